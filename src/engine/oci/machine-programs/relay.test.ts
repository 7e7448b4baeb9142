// The relay itself, on the host: its system calls are the same in a sandbox.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'

const RELAY = join(import.meta.dirname, `relay-${process.arch}`)
const env = { PATH: '/usr/bin:/bin', MARK: '' }

/** Runs a command through the relay. */
function run(...command: string[]) {
  const { status, stdout, stderr } = spawnSync(RELAY, ['lead', 'MARK=set', ...command], { env })
  return { status, stdout: stdout.toString(), stderr: stderr.toString() }
}

test('a command through the relay keeps its output, its streams and its exit code', () => {
  expect(run('sh', '-c', 'echo out; echo err >&2; exit 7')).toEqual({
    status: 7,
    stdout: 'out\n',
    stderr: 'err\n',
  })
  expect(run('sh', '-c', 'kill -9 $$').status).toBe(137)
})

test('a command that does not exist or cannot be executed ends as in a shell', () => {
  expect(run('no-such-command')).toEqual({
    status: 127,
    stdout: '',
    stderr: 'no-such-command: command not found\n',
  })
  expect(run('/etc/passwd')).toMatchObject({ status: 126, stderr: '/etc/passwd: cannot be executed\n' })
})

test('a command has the marker in its environment, and the relay has not', () => {
  const script = 'echo $MARK; tr "\\0" "\\n" </proc/$PPID/environ | grep ^MARK'
  expect(run('sh', '-c', script).stdout).toBe('set\nMARK=\n')
})

test('a command leads a session and has the usual signals', () => {
  // The shell blocks signals while it starts a program, so the last one takes its place.
  const script = 'cut -d" " -f6 /proc/$$/stat; echo $$; exec grep SigBlk /proc/self/status'
  // Node may pass on signals that it blocks itself.
  const unblock = 'use POSIX; sigprocmask(SIG_SETMASK, POSIX::SigSet->new); exec @ARGV'
  const { stdout } = spawnSync('perl', ['-e', unblock, RELAY, 'lead', 'MARK=set', 'sh', '-c', script], {
    env,
  })
  const [session, pid, blocked] = stdout.toString().trim().split('\n')
  expect(session).toBe(pid)
  expect(blocked).toMatch(/:\s+0+$/)
})

test('a write of more than a pipe holds is whole although the reader’s pipe never waits', async () => {
  const bytes = 8 * 1024 * 1024
  const child = spawn(RELAY, ['run', 'MARK=set', 'perl', '-e', `syswrite(STDOUT, "x" x ${bytes})`], { env })
  let read = 0
  for await (const piece of child.stdout) read += (piece as Buffer).length
  expect(read).toBe(bytes)
})

test('what a command leaves behind goes on when the reader has closed the pipes', async () => {
  const script = '(for n in 1 2 3; do sleep 0.1; echo $n || exit; done; echo done >&3) & echo started'
  const child = spawn(RELAY, ['run', 'MARK=set', 'sh', '-c', script], {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  // It may end before its output is read.
  const exited = once(child, 'exit')
  const [stdout, stderr, further] = child.stdio.slice(1) as [Readable, Readable, Readable]
  const [begun] = (await once(stdout, 'data')) as [Buffer]
  expect(begun.toString()).toBe('started\n')
  expect((await exited)[0]).toBe(0)
  stdout.destroy()
  stderr.destroy()
  const [said] = (await once(further, 'data')) as [Buffer]
  expect(said.toString()).toBe('done\n')
})

test('the drain reads both of its descriptors to their ends', async () => {
  const script = `yes 2>/dev/null | head -c 1000000 | "$0" drain <&0 1<&0`
  const { status } = spawnSync('sh', ['-c', script, RELAY], { env })
  expect(status).toBe(0)
})
