import { spawnSync } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runOrThrow } from '../lib/process.ts'
import { type Sandbox, sandboxed } from './sandbox.ts'

// A directory that only root can enter, as the project may be in one.
let closed = ''
let secret = ''
let target = ''

beforeAll(async () => {
  closed = await mkdtemp('/var/tmp/berth-confine-')
  secret = join(closed, 'project')
  await mkdir(secret)
  target = await mkdtemp('/run/berth-confine-')
  await chmod(target, 0o755)
  await chmod(secret, 0o755)
  await writeFile(join(secret, 'file'), 'seen')
  await chmod(join(secret, 'file'), 0o666)
  // The project's own may be where only root can read it.
  await copyFile(process.execPath, join(secret, 'node'))
})

afterAll(async () => {
  for (const path of [closed, target]) await rm(path, { recursive: true })
})

function runConfined(script: string, change: Partial<Sandbox> = {}): string {
  const [command, args] = sandboxed(
    {
      user: 'berth',
      deathSignal: 'SIGKILL',
      binds: [{ mode: 'ro', from: secret, to: target }],
      ...change,
    },
    ['sh', '-c', script],
  )
  const result = spawnSync(command, args, { encoding: 'utf8' })
  return (result.stdout + result.stderr).trim()
}

describe('a sandboxed process', () => {
  it('runs as its user without groups, capabilities or a way to gain privileges', () => {
    expect(runConfined('id --user --name; id --groups | wc --words')).toBe('berth\n1')
    const status = runConfined(
      'grep --extended-regexp "Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs" /proc/self/status',
    )
    expect(status.match(/Cap\w+:\t0{16}/g)).toHaveLength(5)
    expect(status).toContain('NoNewPrivs:\t1')
  })

  it('sees bind mounts read-only by default', () => {
    expect(runConfined(`cat ${secret}/file`)).toMatch(/Permission denied/)
    expect(runConfined(`cat ${target}/file`)).toBe('seen')
    expect(runConfined(`echo changed > ${target}/file`)).toMatch(/Read-only file system/)
  })

  it('can write to a bind mount in mode rw', () => {
    const binds: Sandbox['binds'] = [{ mode: 'rw', from: secret, to: target }]
    expect(runConfined(`echo -n seen > ${target}/file && cat ${target}/file`, { binds })).toBe('seen')
  })

  it('cannot write to world-writable directories of the host', () => {
    for (const dir of ['/tmp', '/var/tmp', '/dev/shm']) {
      expect(runConfined(`touch ${dir}/berth-confine-test`)).toMatch(/Read-only file system/)
    }
  })

  it('does not affect the host’s mounts and holds no network namespace mounts', async () => {
    const name = `berth-conf-${process.pid}`
    await runOrThrow('ip', ['netns', 'add', name], { timeoutMs: 10_000 })
    try {
      expect(runConfined('cat /proc/self/mountinfo')).not.toContain(name)
      expect(await runOrThrow('cat', ['/proc/self/mountinfo'], { timeoutMs: 10_000 })).not.toContain(target)
    } finally {
      await runOrThrow('ip', ['netns', 'delete', name], { timeoutMs: 10_000 })
    }
  })

  it('can listen on low ports only if it is allowed to', () => {
    const listen = `${join(target, 'node')} --eval 'require("net").createServer().on("error", (e) => console.log(e.code)).listen(0x3ff, "127.0.0.1", function () { console.log("listening"); this.close() })'`
    expect(runConfined(listen)).toBe('EACCES')
    expect(runConfined(listen, { lowPorts: true })).toBe('listening')
  })

  it('ends when its parent process is killed', async () => {
    const [command, args] = sandboxed({ user: 'berth', deathSignal: 'SIGKILL', binds: [] }, ['sleep', '600'])
    // Wait until it runs, because before that the death signal is not set.
    const parent = `const { spawn } = require('node:child_process')
      const { readFileSync } = require('node:fs')
      const child = spawn(${JSON.stringify(command)}, ${JSON.stringify(args)}, { detached: true, stdio: 'ignore' })
      console.log(child.pid)
      const isRunning = () => readFileSync('/proc/' + child.pid + '/comm', 'utf8') === 'sleep\\n'
      setInterval(() => { if (isRunning()) process.kill(process.pid, 'SIGKILL') }, 20)`
    const pid = Number(spawnSync(process.execPath, ['--eval', parent], { encoding: 'utf8' }).stdout)
    expect(pid).toBeGreaterThan(1)
    await expect.poll(() => stateOf(pid)).toMatch(/gone|zombie/)
  })
})

function stateOf(pid: number): string {
  const { stdout } = spawnSync('cat', [`/proc/${pid}/status`], { encoding: 'utf8' })
  return /^State:\s+\S+ \((\w+)\)/m.exec(stdout)?.[1] ?? 'gone'
}
