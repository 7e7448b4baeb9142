import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import { spawnProgram } from './spawning.ts'
import { type EndOfChild, tryWait } from './syscalls.ts'

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'berth-spawn-')))
afterAll(() => rmSync(directory, { recursive: true }))

/** The threads of this tier get no signal when a child ends. */
async function ended(pid: number): Promise<EndOfChild> {
  for (;;) {
    const outcome = tryWait(pid)
    if (outcome.kind === 'ended') return outcome.end
    await delay(2)
  }
}

/** Returns what a shell script prints, and how it ended. */
async function sh(script: string, more: string[] = []): Promise<{ said: string; end: EndOfChild }> {
  const path = join(directory, 'said')
  const file = openSync(path, 'w')
  const held = openSync('/dev/null', 'r')
  const env = { PATH: '/usr/bin:/bin', ONE: "it's\n1" }
  const stdio = [null, file, file, held]
  const pid = spawnProgram('/bin/sh', ['-c', script, 'sh', ...more], { env, cwd: directory, stdio })
  const end = await ended(pid)
  for (const fd of [file, held]) closeSync(fd)
  return { said: readFileSync(path, 'utf8'), end }
}

it('a program that is spawned has exactly its arguments, environment, directory and descriptors', async () => {
  const odd = ['', "it's", 'two\nlines', '$(id)', '\u{1f6a2}']
  const { said } = await sh('for one in "$@"; do echo "<$one>"; done; env; pwd; readlink /proc/$$/fd/0', odd)
  expect(said).toContain(odd.map((one) => `<${one}>\n`).join(''))
  expect(said).toContain("ONE=it's\n1\n")
  expect(said).toContain(`${directory}\n/dev/null\n`)
  expect(said).not.toContain('HOME=')
  const listing = 'ls /proc/$$/fd'
  const byNode = spawnSync('/bin/sh', ['-c', listing], { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
  expect((await sh(listing)).said).toBe(byNode.stdout.toString())
})

it('a program that is spawned begins a session, ignores no signal and blocks none', async () => {
  // The shell blocks signals while it starts a program, so the last one takes its place.
  const masks = 'exec grep -E "^Sig(Ign|Blk)" /proc/self/status'
  const { said } = await sh(`cut -d " " -f 6 /proc/$$/stat; echo $$; ${masks}`)
  const [session, pid, ...lines] = said.trim().split('\n')
  expect(session).toBe(pid)
  expect(lines.map((line) => line.split(/\s+/)[1])).toEqual(['0000000000000000', '0000000000000000'])
})

it('how a program that is spawned ends is found out, by its code or its signal', async () => {
  expect((await sh('exit 7')).end).toEqual({ code: 7, signal: 0 })
  expect((await sh('kill -9 $$')).end).toEqual({ code: 0, signal: 9 })
})

it('descriptors may be passed on in any order, also as each other', async () => {
  const path = join(directory, 'said')
  const [out, other] = [openSync(path, 'w'), openSync('/etc/hostname', 'r')]
  const stdio: (number | null)[] = Array.from({ length: Math.max(out, other) + 1 }, () => null)
  Object.assign(stdio, { 1: out, [out]: other, [other]: out })
  const script = `readlink /proc/$$/fd/${out}; readlink /proc/$$/fd/${other}; ls /proc/$$/fd`
  const pid = spawnProgram('/bin/bash', ['-c', script], { env: { PATH: '/usr/bin:/bin' }, stdio })
  expect(await ended(pid)).toEqual({ code: 0, signal: 0 })
  for (const fd of [out, other]) closeSync(fd)
  const said = readFileSync(path, 'utf8')
  expect(said.startsWith(`/etc/hostname\n${path}\n`)).toBe(true)
  expect(said).not.toMatch(/^9\d\d$/m)
})

it('a program is found in the PATH that it will have, and is called as it was asked for', async () => {
  const path = join(directory, 'said')
  const file = openSync(path, 'w')
  const env = { PATH: '/nowhere:/usr/bin:/bin' }
  const pid = spawnProgram('cat', ['/proc/self/cmdline'], { env, stdio: [null, file, null] })
  expect(await ended(pid)).toEqual({ code: 0, signal: 0 })
  closeSync(file)
  expect(readFileSync(path, 'utf8')).toBe('cat\0/proc/self/cmdline\0')
  expect(() => spawnProgram('cat', [], { env: { PATH: '/nowhere' }, stdio: [] })).toThrow('ENOENT')
})

it('a program that is not there and a descriptor that is not open are errors', () => {
  const none = { env: {}, stdio: [] }
  expect(() => spawnProgram('/nowhere', [], none)).toThrow('ENOENT')
  expect(() => spawnProgram('/bin/true', [], { env: {}, stdio: [12_345] })).toThrow('EBADF')
})
