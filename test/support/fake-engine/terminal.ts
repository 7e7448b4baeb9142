// An interactive command of the fake: a shell that runs a line when it has come, `cat`, or any other program without an
// input. In a terminal it echoes what is typed, and Ctrl-C ends what runs.

import { constants } from 'node:os'
import type { Clock } from '../../../src/lib/clock.ts'
import type { ExecExit, ExecOutput, TerminalRequest } from '../../../src/engine/exec.ts'
import { isEngineError } from '../../../src/engine/errors.ts'
import type { TerminalInput, TerminalSignal } from '../../../src/engine/terminal.ts'
import { untilAborted } from './faults.ts'
import { userNamed } from './files.ts'
import { type FakeMachine, KILLED_CODE, notRunning, processIn, TIMED_OUT_CODE } from './machine.ts'
import { type FakeProcess, runProgram } from './programs.ts'

const PID = 50

type OnOutput = (output: ExecOutput) => void | Promise<void>

/** Ends what runs with 128 + its number. */
class Signalled extends Error {
  readonly code: number
  constructor(signal: TerminalSignal) {
    super(signal)
    this.code = 128 + constants.signals[`SIG${signal}`]
  }
}

export async function terminalInRun(
  machine: FakeMachine,
  request: TerminalRequest,
  input: AsyncIterable<TerminalInput>,
  clock: Clock,
  onOutput: OnOutput,
  gone: AbortSignal,
  onBegun: (pid: number) => void = () => {},
): Promise<ExecExit> {
  const { run } = machine
  if (!run) throw notRunning(machine.spec.id)
  const user = request.user === undefined ? null : userNamed(request.user)
  onBegun(PID)
  const done = new AbortController()
  const timeout = new AbortController()
  clock.sleep(request.timeoutMs, done.signal).then(
    () => timeout.abort(new Error('the command took too long')),
    () => {},
  )
  const killed = AbortSignal.any([gone, run.killed.signal, timeout.signal])
  const isTerminal = request.size !== null
  const write: FakeProcess['write'] = async (stream, data) => {
    const shown = isTerminal ? Buffer.from(data.toString('latin1').replace(/\n/g, '\r\n'), 'latin1') : data
    const output = { stream: isTerminal ? ('stdout' as const) : stream, data: shown }
    if (data.length > 0) await untilAborted(killed, async () => await onOutput(output))
  }
  const process = processIn(machine, run, clock, request.argv, killed, write)
  const self = {
    ...process,
    env: { ...process.env, ...request.env },
    cwd: request.cwd ?? process.cwd,
    user: user === null ? process.user : String(user.uid),
  }
  try {
    return { exitCode: await runInteractive(self, request, input, killed), timedOut: false }
  } catch (error) {
    gone.throwIfAborted()
    if (error instanceof Signalled) return { exitCode: error.code, timedOut: false }
    if (!killed.aborted) throw error
    const timedOut = timeout.signal.aborted
    if (!timedOut && isEngineError(killed.reason, 'run_ended')) throw killed.reason
    return { exitCode: timedOut ? TIMED_OUT_CODE : KILLED_CODE, timedOut }
  } finally {
    done.abort()
  }
}

/** A write or a sleep of it rejects with the signal that ends it. */
function interruptible(self: FakeProcess, interrupted: AbortSignal): FakeProcess {
  return {
    ...self,
    write: async (stream, data) => {
      interrupted.throwIfAborted()
      await untilAborted(interrupted, async () => await self.write(stream, data))
    },
    sleep: async (ms) => await untilAborted(interrupted, async () => await self.sleep(ms)),
  }
}

async function runInteractive(
  self: FakeProcess,
  { size, argv }: TerminalRequest,
  input: AsyncIterable<TerminalInput>,
  killed: AbortSignal,
): Promise<number> {
  const isShell =
    ['sh', 'bash', '/bin/sh'].includes(argv[0] ?? '') &&
    (argv.length === 1 || argv.at(-1)?.endsWith('; exec sh'))
  const isCat = argv[0] === 'cat' && argv.length === 1
  const prompt = size && isShell ? '$ ' : ''
  let now = size ?? { columns: 0, rows: 0 }
  let foreground = new AbortController()
  let running: Promise<void> = Promise.resolve()
  let line = ''
  let code = 0
  const over = Promise.withResolvers<number>()
  over.promise.catch(() => {})
  const print = async (text: string) => await self.write('stdout', Buffer.from(text))
  const runLine = async (typed: string) => {
    foreground = new AbortController()
    const exit = /^\s*exit(?:\s+(\d+))?\s*$/.exec(typed)
    if (exit) return over.resolve(Number(exit[1] ?? code))
    try {
      if (isCat) await print(`${typed}\n`)
      else if (typed.trim() === 'stty size') await print(`${now.rows} ${now.columns}\n`)
      else {
        const script = typed.replaceAll('$?', `${code}`)
        code = await runProgram({ ...interruptible(self, foreground.signal), argv: ['sh', '-c', script] })
      }
    } catch (error) {
      if (!(error instanceof Signalled) || killed.aborted) throw error
      code = error.code
    }
    await print(prompt)
  }
  const enqueue = (work: () => Promise<void>) => {
    running = running.then(work)
    running.catch(over.reject)
  }
  const interrupt = (signal: TerminalSignal) => {
    if (!isShell) over.reject(new Signalled(signal))
    foreground.abort(new Signalled(signal))
    line = ''
  }
  const endInput = () => {
    if (isShell || isCat) enqueue(async () => over.resolve(code))
  }
  const type = (text: string) => {
    for (const each of text) {
      if (size && each === '\x03') interrupt('INT')
      else if (size && each === '\x04' && line === '') endInput()
      else if (each === '\r' || each === '\n') {
        const typed = line
        line = ''
        if (size) enqueue(async () => await print('\n'))
        enqueue(async () => await runLine(typed))
      } else {
        line += each
        if (size) enqueue(async () => await print(each))
      }
    }
  }
  const take = async () => {
    for await (const each of input) {
      if (each.kind === 'resize') now = each.size
      else if (each.kind === 'signal') interrupt(each.signal)
      else if (each.kind === 'eof') endInput()
      else if (isShell || isCat || size) {
        if (isCat && !size) enqueue(async () => await self.write('stdout', each.data))
        else type(each.data.toString('latin1'))
        // As a pipe that is full: what comes next waits for the command.
        if (isCat) await running.catch(() => {})
      }
    }
    endInput()
  }
  if (isShell || isCat) await print(prompt)
  else runProgram(self).then(over.resolve, over.reject)
  take().catch(over.reject)
  return await untilAborted(killed, async () => await over.promise)
}
