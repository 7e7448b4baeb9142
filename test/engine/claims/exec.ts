// A command stays in its machine, and its unread output is not buffered in the engine (reliability I14). Arguments are
// never interpreted (S31).

import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { collectGarbage } from '../../support/collect-garbage.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

const MB = 1024 * 1024

export function execClaims(suite: Suite): void {
  const machine = suite.shared()

  test('a command returns its exit code and separate stdout and stderr', async () => {
    expect(await suite.sh(machine(), 'echo out; echo err >&2; exit 3')).toMatchObject({
      exitCode: 3,
      timedOut: false,
      stdout: 'out\n',
      stderr: 'err\n',
    })
  })

  test('standard input is read to its end', async () => {
    expect(await suite.exec(machine(), ['cat'], { stdin: 'given' })).toMatchObject({ stdout: 'given' })
    expect(await suite.exec(machine(), ['cat'], { stdin: '' })).toMatchObject({ exitCode: 0, stdout: '' })
  })

  test('a command without standard input gets an end of file', async () => {
    expect(await suite.exec(machine(), ['cat'])).toMatchObject({ exitCode: 0, timedOut: false, stdout: '' })
  })

  test('bytes pass in both directions unchanged', async () => {
    const stdin = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), randomBytes(3 * MB)])
    const { exitCode, bytes } = await suite.exec(machine(), ['cat'], { stdin })
    expect(exitCode).toBe(0)
    expect(bytes.equals(stdin)).toBe(true)
  })

  test('a command that never reads its input can end', async () => {
    const result = await suite.exec(machine(), ['true'], { stdin: Buffer.alloc(MB) })
    expect(result).toMatchObject({ exitCode: 0, timedOut: false })
  })

  test('an unknown command exits with 127 and an error message', async () => {
    for (const command of ['no-such-command', '/no/such/command', '-c', '']) {
      const { exitCode, stderr } = await suite.exec(machine(), [command])
      expect([command, exitCode]).toEqual([command, 127])
      expect(stderr).not.toBe('')
    }
  })

  test('a file that is not executable exits with 126 and an error message', async () => {
    await suite.engine().writeFile(machine(), '/tmp/plain', Buffer.from('plain text'))
    const { exitCode, stderr } = await suite.exec(machine(), ['/tmp/plain'])
    expect(exitCode).toBe(126)
    expect(stderr).not.toBe('')
  })

  test('arguments are passed unchanged: dashes, empty, newlines, 8192 bytes', async () => {
    const argv = ['-n', '--', '', 'two\nlines', `'"$HOME\``, '*', 'é✓', 'x'.repeat(8192)]
    const { stdout } = await suite.exec(machine(), ['printf', '%s\\n', ...argv])
    expect(stdout).toBe(argv.map((arg) => `${arg}\n`).join(''))
  })

  test('many and long arguments are accepted', async () => {
    for (const [count, length] of [
      [1022, 100],
      [15, 65_536],
      [1, 131_071],
    ] as const) {
      const argv = ['printf', '%s', ...Array.from({ length: count }, () => 'y'.repeat(length))]
      expect((await suite.exec(machine(), argv)).stdout.length).toBe(count * length)
    }
  })

  test('a command is killed at its timeout, and its output is kept', async () => {
    const result = await suite.sh(machine(), 'echo first; sleep 1000; echo never', { timeoutMs: 1500 })
    expect(result).toMatchObject({ timedOut: true, stdout: 'first\n' })
    expect(result.exitCode).not.toBe(0)
  })

  test('a command that prints endlessly ends at its timeout', async () => {
    let bytes = 0
    const exit = await suite
      .engine()
      .exec(
        machine(),
        { argv: ['yes'], stdin: null, timeoutMs: 1500 },
        ({ data }) => void (bytes += data.length),
      )
    expect(exit.timedOut).toBe(true)
    expect(bytes).toBeGreaterThan(1000)
  })

  test('a slow reader gets all of 100 MB, and the engine does not buffer it', async () => {
    const total = 100 * MB
    let bytes = 0
    let peak = 0
    const most = 50 * MB
    // Of this thread: tests that run beside it in the process have memory of their own.
    const held = () => process.memoryUsage().arrayBuffers
    const before = held()
    const heldMore = () => {
      // What nobody holds any more may not have been collected yet.
      if (held() - before > most) collectGarbage()
      return held() - before
    }
    const exit = await suite
      .engine()
      .exec(
        machine(),
        { argv: ['head', '-c', String(total), '/dev/zero'], stdin: null, timeoutMs: 60_000 },
        async ({ data }) => {
          // Slow at first, while everything there is could pile up; then fast, to come to an end.
          if (bytes < 2 * MB) await new Promise((resolve) => setTimeout(resolve, 40))
          bytes += data.length
          if (bytes < 4 * MB) peak = Math.max(peak, heldMore())
        },
      )
    expect(exit).toEqual({ exitCode: 0, timedOut: false })
    expect(bytes).toBe(total)
    expect(peak).toBeLessThan(most)
  })

  test('aborting a command kills it and ends the call', async () => {
    const abort = new AbortController()
    setTimeout(() => abort.abort(new Error('the caller left')), 500)
    const script = 'sleep 1000; echo survived > /tmp/survived'
    const call = suite.sh(machine(), script, { signal: abort.signal, timeoutMs: 900_000 })
    await call.catch(() => undefined)
    // A caller on another machine has gone before the engine hears of it.
    await eventually(async () => {
      const { stdout } = await suite.sh(machine(), 'cat /proc/[0-9]*/cmdline')
      return stdout.includes('sleep\x001000\0') ? null : true
    })
    expect(await suite.sh(machine(), 'test -f /tmp/survived')).toMatchObject({ exitCode: 1 })
  })

  test('variables given to a command override those of its machine', async () => {
    const env = { MINE: "it's ✓\nmine", PATH: '/usr/bin:/bin' }
    const { stdout } = await suite.sh(machine(), 'printenv MINE; printenv PATH', { env })
    expect(stdout).toBe("it's ✓\nmine\n/usr/bin:/bin\n")
    expect((await suite.sh(machine(), 'printenv MINE')).exitCode).toBe(1)
  })

  test('a command runs in the directory it was given', async () => {
    const given = { cwd: '/tmp', env: { MINE: 'yes' }, stdin: 'in' }
    const { stdout } = await suite.sh(machine(), 'pwd; printenv MINE; cat', given)
    expect(stdout).toBe('/tmp\nyes\nin')
    const said = await suite.exec(machine(), ['echo', '-n', 'a b', ''], { cwd: '/tmp' })
    expect(said).toMatchObject({ exitCode: 0, stdout: 'a b ' })
    expect((await suite.exec(machine(), ['no-such-command'], { cwd: '/tmp' })).exitCode).toBe(127)
    const late = await suite.exec(machine(), ['sleep', '60'], { cwd: '/tmp', timeoutMs: 1500 })
    expect(late.timedOut).toBe(true)
  })

  test('20 concurrent commands each get their own output', async () => {
    const calls = Array.from({ length: 20 }, (_, i) =>
      suite.sh(machine(), 'cat; exit 4', { stdin: `call ${i}` }),
    )
    for (const [i, result] of (await Promise.all(calls)).entries()) {
      expect(result).toMatchObject({ exitCode: 4, stdout: `call ${i}` })
    }
  })

  test('a reader that throws ends the command, and the call throws its error', async () => {
    const call = suite.engine().exec(machine(), { argv: ['yes'], stdin: null, timeoutMs: 900_000 }, () => {
      throw new Error('the reader failed')
    })
    await expect(call).rejects.toThrow('the reader failed')
  })

  // BERTH_TEST_EXECS asks for more of them. Ten thousand take half an hour on two busy cores.
  const manyCalls = Number(process.env['BERTH_TEST_EXECS'] ?? (suite.options.small ? 20 : 120))
  const manyCallsMs = Math.max(600_000, manyCalls * 1000)

  test(
    'stderr of short commands is never lost',
    async () => {
      let left = manyCalls
      const script = 'echo out; echo err >&2; exit 7'
      const callers = Array.from({ length: 6 }, async () => {
        while (left-- > 0) {
          const { exitCode, stdout, stderr } = await suite.sh(machine(), script)
          expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 7, stdout: 'out\n', stderr: 'err\n' })
        }
      })
      await Promise.all(callers)
    },
    manyCallsMs,
  )

  test('a command whose machine is stopped or destroyed fails with run_ended and keeps its output', async () => {
    for (const end of ['stop', 'destroy'] as const) {
      const ref = await suite.running()
      const begun = Promise.withResolvers<void>()
      const said = { stdout: '', stderr: '' }
      const argv = ['sh', '-c', 'echo begun; sleep 60']
      const call = suite.engine().exec(ref, { argv, stdin: null, timeoutMs: 60_000 }, ({ stream, data }) => {
        said[stream] += data.toString()
        begun.resolve()
      })
      const kind = kindOf(call)
      await begun.promise
      await (end === 'stop' ? suite.engine().stop(ref, 1000) : suite.engine().destroy(ref.id))
      expect([end, await kind, said]).toEqual([end, 'run_ended', { stdout: 'begun\n', stderr: '' }])
    }
  })
}
