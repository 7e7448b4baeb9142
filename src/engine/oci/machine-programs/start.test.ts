// The program itself, on the host: its system calls are the same in a machine.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const START = join(import.meta.dirname, `start-${process.arch}`)
const env = { PATH: '/nowhere:/usr/bin:/bin', MARK: 'before' }

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'start-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** `told`: what it says of its command on descriptor 3. */
function start(...args: string[]) {
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe'] as const
  const { status, output, pid } = spawnSync(START, args, { env, stdio: [...stdio] })
  const [stdout, stderr, told] = output.slice(1).map(String)
  return { status, stdout, stderr, told, pid }
}

describe('what starts a command in a machine', () => {
  test('enters the directory, and gives the command its arguments', () => {
    const { status, stdout } = start('in', '/usr', 'sh', '-c', 'pwd; echo "$0 $1"; exit 7', 'a', 'b c')
    expect({ status, stdout }).toEqual({ status: 7, stdout: '/usr\na b c\n' })
  })

  test('says the pid of the command before what that prints', () => {
    const { stdout, pid } = start('pid', '', 'sh', '-c', 'echo $$')
    expect(stdout).toBe(`${pid}\n${pid}\n`)
  })

  test('says no pid where the directory cannot be entered', () => {
    expect(start('pid', '/no/such', 'true')).toMatchObject({ status: 126, stdout: '' })
  })

  test('tells its own pid and the exit code of its command, which has neither that descriptor nor the variable', () => {
    const script = 'echo "$MARK"; test -e /proc/self/fd/3 || echo closed; exit 3'
    const { stdout, told, pid } = start('told', 'MARK=after', '', 'sh', '-c', script)
    expect(told).toBe(`pid ${pid}\nexit 3\n`)
    expect(stdout).toBe('after\nclosed\n')
    expect(start('told', '', '', 'sh', '-c', 'echo "$MARK"').stdout).toBe('before\n')
  })

  test('tells of a command that a signal ended what a shell would', () => {
    expect(start('told', '', '', 'sh', '-c', 'kill -9 $$').told).toMatch(/\nexit 137\n$/)
  })

  test('outlives the signals of its group, which its command gets', async () => {
    const script = 'trap "echo caught; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
    const child = spawn(START, ['told', '', '', 'sh', '-c', script], {
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
    })
    const [output, told] = [child.stdio[1] as Readable, child.stdio[3] as Readable]
    await once(output, 'data')
    process.kill(-(child.pid ?? 0), 'SIGTERM')
    const [printed, said] = await Promise.all([text(output), text(told)])
    expect(printed).toBe('caught\n')
    expect(said).toBe(`pid ${child.pid}\nexit 5\n`)
  })

  test.each([
    ['a name that is nowhere in PATH', () => 'no-such-program', 127, 'command not found'],
    ['no name', () => '', 127, 'command not found'],
    ['a path that does not exist', () => '/no/such/program', 127, 'command not found'],
    ['a directory', () => '/usr', 126, 'cannot be executed'],
    ['a file without the right to execute it', () => '/etc/hostname', 126, 'cannot be executed'],
    ['a program without a format', () => written('text', 'echo hi\n'), 126, 'cannot be executed'],
    ['an interpreter that is missing', () => written('lost', '#! /no/such -x\n'), 127, 'command not found'],
  ])('refuses %s as a shell does, and tells so', (_, name, code, words) => {
    const command = name()
    for (const args of [
      ['in', ''],
      ['told', '', ''],
    ]) {
      const { status, stderr, told } = start(...args, command)
      expect({ status, stderr }).toEqual({ status: code, stderr: `${command}: ${words}\n` })
      expect(told).toMatch(args[0] === 'told' ? new RegExp(`\nexit ${code}\n$`) : /^$/)
    }
  })

  test('refuses a directory that cannot be entered', () => {
    for (const args of [['in'], ['told', '']]) {
      const { status, stderr } = start(...args, '/no/such', 'true')
      expect({ status, stderr }).toEqual({
        status: 126,
        stderr: '/no/such: cannot be the working directory\n',
      })
    }
  })
})

function written(name: string, content: string): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  chmodSync(path, 0o755)
  return path
}
