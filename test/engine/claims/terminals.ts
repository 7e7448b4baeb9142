// Interactive commands in a terminal or on pipes. They have the same limits as other commands and end with their caller.

import { expect, onTestFinished, test } from 'vitest'
import type { MachineRef } from '../../../src/engine/engine.ts'
import type { ExecExit, TerminalRequest } from '../../../src/engine/exec.ts'
import type { TerminalInput } from '../../../src/engine/terminal.ts'
import { eventually, kindOf, type Suite } from '../suite.ts'

const MB = 1024 * 1024
const KEPT_CHARACTERS = 100_000
const WITHIN_MS = 60_000

/** What is typed, one after the other, until it ends. */
function createTyping() {
  const waiting: TerminalInput[] = []
  let changed = Promise.withResolvers<void>()
  let isOver = false
  const tell = () => {
    changed.resolve()
    changed = Promise.withResolvers<void>()
  }
  async function* input(): AsyncGenerator<TerminalInput> {
    for (;;) {
      const next = waiting.shift()
      if (next) yield next
      else if (isOver) return
      else await changed.promise
    }
  }
  return {
    input: input(),
    send: (each: TerminalInput) => {
      waiting.push(each)
      tell()
    },
    end: () => {
      isOver = true
      tell()
    },
  }
}

export function terminalClaims(suite: Suite): void {
  const machine = suite.shared()

  function open(
    argv: string[],
    given: Partial<TerminalRequest> & { on?: MachineRef; onOutput?: () => Promise<void> } = {},
  ) {
    const { on = machine(), onOutput, ...request } = given
    const typing = createTyping()
    const abort = new AbortController()
    const said = { stdout: '', stderr: '' }
    const exit: Promise<ExecExit> = suite.engine().terminal(
      on,
      { argv, size: { columns: 80, rows: 24 }, timeoutMs: 600_000, env: { PS1: '$ ' }, ...request },
      typing.input,
      async ({ stream, data }) => {
        said[stream] = (said[stream] + data.toString('latin1')).slice(-KEPT_CHARACTERS)
        await onOutput?.()
      },
      abort.signal,
    )
    exit.catch(() => {})
    onTestFinished(async () => {
      abort.abort(new Error('the test is over'))
      typing.end()
      await exit.catch(() => {})
    })
    return {
      exit,
      said,
      abort,
      type: (text: string) => typing.send({ kind: 'bytes', data: Buffer.from(text) }),
      send: typing.send,
      sees: async (text: string) =>
        await eventually(async () => said.stdout.includes(text) || null, WITHIN_MS),
    }
  }

  test('a terminal has the size given by the caller and can be resized', async () => {
    const terminal = open(['sh'])
    await terminal.sees('$ ')
    terminal.type('stty size\r')
    await terminal.sees('24 80\r\n')
    terminal.send({ kind: 'resize', size: { columns: 132, rows: 50 } })
    terminal.type('stty size\r')
    await terminal.sees('50 132\r\n')
  })

  test('Ctrl-C ends the command in a terminal, but not its shell', async () => {
    const terminal = open(['sh'])
    // What prints is the terminal's foreground by then, and the shell is not.
    terminal.type(`sh -c "echo be''gun; exec sleep 1000"\r`)
    await terminal.sees('begun\r\n')
    terminal.type('\x03')
    terminal.type("echo co''de $?\r")
    await terminal.sees('code 130\r\n')
    terminal.send({ kind: 'eof' })
    expect((await terminal.exit).timedOut).toBe(false)
  })

  test('a terminal returns the shell’s exit code after all output', async () => {
    const terminal = open(['sh'])
    terminal.type("echo la''st; exit 7\r".replace('; ', '\r'))
    expect(await terminal.exit).toEqual({ exitCode: 7, timedOut: false })
    expect(terminal.said.stdout).toContain('last\r\n')
  })

  test('without a TTY, stdout and stderr are separate, and a signal ends the command', async () => {
    const terminal = open(['sh', '-c', 'echo out; echo err >&2; echo begun; sleep 1000'], { size: null })
    await terminal.sees('begun')
    terminal.send({ kind: 'signal', signal: 'TERM' })
    expect((await terminal.exit).exitCode).toBe(143)
    expect(terminal.said).toEqual({ stdout: 'out\nbegun\n', stderr: 'err\n' })
  })

  test('without a TTY, input sent during the run is passed unchanged up to its end', async () => {
    const terminal = open(['cat'], { size: null })
    terminal.type('first\n')
    await terminal.sees('first\n')
    terminal.type('second\n')
    terminal.send({ kind: 'eof' })
    expect(await terminal.exit).toEqual({ exitCode: 0, timedOut: false })
    expect(terminal.said.stdout).toBe('first\nsecond\n')
  })

  test('an unknown command ends its terminal with 127 and an error message', async () => {
    const terminal = open(['no-such-command'])
    expect((await terminal.exit).exitCode).toBe(127)
    expect(terminal.said.stdout).toContain('not found')
  })

  test('a terminal ends at its timeout', async () => {
    const terminal = open(['sleep', '1000'], { timeoutMs: 1500 })
    expect((await terminal.exit).timedOut).toBe(true)
  })

  /** A caller on another machine has gone before the engine hears of it. */
  const hasEnded = async (command: string) =>
    await eventually(async () => {
      const { stdout } = await suite.sh(machine(), 'cat /proc/[0-9]*/cmdline')
      return stdout.includes(command) ? null : true
    }, WITHIN_MS)

  test('a terminal without a reader applies backpressure and ends with its caller', async () => {
    const held = () => process.memoryUsage().arrayBuffers
    const before = held()
    const first = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    const terminal = open(['yes', 'a-line-of-a-flood'], {
      onOutput: async () => {
        first.resolve()
        await left.promise
      },
    })
    await first.promise
    // Another command takes its time meanwhile: the flood had as much.
    await suite.sh(machine(), 'sleep 1')
    expect(held() - before).toBeLessThan(20 * MB)
    terminal.abort.abort(new Error('the caller left'))
    left.resolve()
    await terminal.exit.catch(() => {})
    await hasEnded('a-line-of-a-flood\0')
  })

  test('input to a program that does not read blocks nothing, and a signal still reaches it', async () => {
    const terminal = open(['sh', '-c', 'echo begun; sleep 1000'])
    await terminal.sees('begun')
    terminal.type('unread '.repeat(20_000))
    expect((await suite.sh(machine(), 'echo meanwhile')).stdout).toBe('meanwhile\n')
    // As a person does who sees nothing happen.
    const again = setInterval(() => terminal.send({ kind: 'signal', signal: 'INT' }), 500)
    onTestFinished(() => clearInterval(again))
    expect((await terminal.exit).exitCode).toBe(130)
  })

  test('a terminal whose caller aborts is killed with its processes', async () => {
    const terminal = open(['sh', '-c', 'echo begun; sleep 1234; echo never'])
    await terminal.sees('begun')
    terminal.abort.abort(new Error('the caller left'))
    await terminal.exit.catch(() => {})
    await hasEnded('sleep\x001234\0')
  })

  test('a terminal whose machine is stopped fails with run_ended', async () => {
    const ref = await suite.running()
    const terminal = open(['sh', '-c', 'echo begun; sleep 1000'], { on: ref })
    await terminal.sees('begun')
    const kind = kindOf(terminal.exit)
    await suite.engine().stop(ref, 1000)
    expect(await kind).toBe('run_ended')
  })
}
