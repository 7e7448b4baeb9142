// What a command prints is whole, however much it writes at once, and what it leaves behind can go on printing.

import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventually, type Suite } from '../suite.ts'
import { createBackground } from './background.ts'

const KB = 1024
const MB = 1024 * KB

/** Each is written by one call of the kernel, whose result the program does not look at. */
const sizes = [64 * KB + 1, MB, 32 * MB]
const writeOnce = (stream: 'STDOUT' | 'STDERR', bytes: number) => `syswrite(${stream}, "x" x ${bytes})`

/** Prints some kilobytes several times a second until /tmp/go is there, and then writes to a file that it has. */
const printer = (file: string) => {
  const print = 'print "x" x 9999, "\n" or exit; select(undef, undef, undef, 0.1)'
  return `perl -e '$| = 1; do { ${print} } until -e "/tmp/go"; open F, ">", "${file}"; print F "done\n"'`
}
/** Until it has printed more than its pipe holds. */
const PRINTS_MS = 1500

/** Needs real pipes, and an engine that can be opened again. */
export function outputClaims(suite: Suite): void {
  const machine = suite.shared({}, { size: { cpus: 1, memoryMb: 512, pids: 512, diskGb: 1 } })
  const background = createBackground(suite)

  /** Lets what has been left behind end, and waits until so many have. */
  const untilDone = async (count: number) => {
    await setTimeout(PRINTS_MS)
    await suite.sh(machine(), 'touch /tmp/go')
    await eventually(async () => {
      const { stdout } = await suite.sh(machine(), 'cat /tmp/left-* 2>/dev/null | wc -l')
      return stdout.trim() === `${count}` ? true : null
    }, 120_000)
    await suite.sh(machine(), 'rm -f /tmp/go /tmp/left-*')
  }

  test.each(sizes)('a command that writes %d bytes at once has all of them read', async (bytes) => {
    const given = { timeoutMs: 120_000 }
    const argv = ['perl', '-e', writeOnce('STDOUT', bytes)]
    expect((await suite.exec(machine(), argv, given)).bytes.length).toBe(bytes)
    expect((await suite.exec(machine(), argv, { ...given, cwd: '/usr' })).bytes.length).toBe(bytes)
    const toErrors = await suite.exec(machine(), ['perl', '-e', writeOnce('STDERR', bytes)], given)
    expect(toErrors.stderr.length).toBe(bytes)
  })

  test('a background process that writes 32 MB at once has all of them read', async () => {
    const { id } = await background.start(machine(), ['perl', '-e', writeOnce('STDOUT', 32 * MB)])
    expect((await background.over(machine(), id, 120_000)).output.to).toBe(32 * MB)
  })

  test('a command can open its output again by its path', async () => {
    const script = 'echo one >/dev/stdout; echo two >/proc/self/fd/1; echo three >/dev/stderr'
    expect(await suite.sh(machine(), script)).toMatchObject({ stdout: 'one\ntwo\n', stderr: 'three\n' })
  })

  test('what a command leaves behind goes on printing after its end', async () => {
    const begun = await suite.sh(machine(), `${printer('/tmp/left-by-exec')} & echo started`)
    expect(begun).toMatchObject({ exitCode: 0, timedOut: false })
    expect(begun.stdout).toContain('started\n')
    await untilDone(1)
  })

  test('what a background process leaves behind goes on printing after its end', async () => {
    const { id } = await background.sh(machine(), `${printer('/tmp/left-by-process')} & echo started`)
    expect(await background.over(machine(), id)).toMatchObject({ state: 'exited', exitCode: 0 })
    await untilDone(1)
  })

  test('a command ends although what it leaves behind is never silent', async () => {
    const result = await suite.sh(machine(), '(while :; do echo more; done) & echo started', {
      timeoutMs: 60_000,
    })
    expect(result).toMatchObject({ exitCode: 0, timedOut: false })
    await suite.sh(machine(), 'pkill -f "echo more" || true')
  })

  suite.long('a hundred processes left behind go on printing while the engine is opened again', async () => {
    const names = Array.from({ length: 100 }, (_, name) => name)
    const callers = Array.from({ length: 4 }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const begun = await suite.sh(machine(), `${printer(`/tmp/left-${name}`)} & echo started`)
        expect(begun.exitCode).toBe(0)
      }
    })
    await Promise.all(callers)
    await suite.reopen()
    await untilDone(100)
  })
}
