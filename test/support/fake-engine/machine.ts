// One machine of the fake engine: its state, the run of its first process, and its log. Time comes from the
// clock that is handed in, so a test owns it.

import type { Clock } from '../../../src/lib/clock.ts'
import type { MachineEgress } from '../../../src/engine/egress.ts'
import type { ImageConfig } from '../../../src/engine/engine.ts'
import type { ExecExit, ExecOutput, ExecRequest } from '../../../src/engine/exec.ts'
import type { LogLine, LogQuery, MachineSpec, MachineStatus, RunSpec } from '../../../src/engine/engine.ts'
import { EngineError, isEngineError } from '../../../src/engine/errors.ts'
import { untilAborted } from './faults.ts'
import { userNamed } from './files.ts'
import { type FakeMemory, useMemory } from './memory.ts'
import { type Awake, awakeFrom, standStill } from './metrics.ts'
import type { FakeBackground } from './processes.ts'
import { type FakeProcess, knowsProgram, runProgram } from './programs.ts'

/** Where a machine finds how many forks lie between it and its first ancestor. */
export const FORK_GENERATION = '/run/berth/fork-generation'

/** 128 + SIGKILL: what a process that was killed ends with. */
export const KILLED_CODE = 137
/** As `timeout` of coreutils answers. */
export const TIMED_OUT_CODE = 124

export type FakeMachine = {
  spec: MachineSpec
  image: ImageConfig
  status: MachineStatus
  /** What it may reach, as it was told last. */
  egress: MachineEgress | null
  files: Map<string, Buffer>
  /** What listens for it alone, and where that is reached. */
  loopbacks: Map<number, number>
  log: LogLine[]
  /** The run that printed each line of the log. */
  logRuns: number[]
  run: FakeRun | null
  /** Kept for its next start. */
  memory: FakeMemory | null
  /** Background processes, of this run and earlier ones. */
  processes: Map<string, FakeBackground>
  /** Settles at the next log line or change of state; then there is a new one. */
  changed: PromiseWithResolvers<void>
}

type FakeRun = { spec: RunSpec; resumed: boolean; killed: AbortController; awake: Awake }

export function newMachine(spec: MachineSpec, image: ImageConfig, address: string): FakeMachine {
  return {
    spec,
    image,
    loopbacks: new Map(),
    status: { id: spec.id, generation: 0, state: 'created', frozen: false, exit: null, address },
    egress: null,
    files: new Map([[FORK_GENERATION, Buffer.from('0\n')]]),
    log: [],
    logRuns: [],
    run: null,
    memory: null,
    processes: new Map(),
    changed: Promise.withResolvers(),
  }
}

/** Starts a run; `onEnd` is called once, unless the run is ended by something else first. */
export function startRun(
  machine: FakeMachine,
  generation: number,
  spec: RunSpec,
  clock: Clock,
  onEnd: (code: number) => void,
): void {
  const argv = commandOf(machine.image, spec)
  if (argv[0] === undefined)
    throw new EngineError('start_failed', 'Neither the image nor the unit has a command.')
  if (argv[0].includes('no-such')) {
    throw new EngineError(
      'start_failed',
      `The command ${JSON.stringify(argv[0])} was not found in the image.`,
    )
  }
  const resumed = useMemory(machine, spec)
  const run: FakeRun = { spec, resumed, killed: new AbortController(), awake: awakeFrom(clock) }
  machine.run = run
  machine.egress = spec.egress
  machine.status = { ...machine.status, generation, state: 'running', frozen: false, exit: null }
  if (!resumed) for (const file of spec.files) machine.files.set(file.path, file.content)
  wake(machine)
  // A program the fake does not know is a server: it runs until something ends it. So is one that goes on: it
  // must not begin again.
  const known = knowsProgram(argv[0]) && !resumed
  const log = lineWriter(machine, clock)
  const process = processIn(
    machine,
    run,
    clock,
    known ? argv : ['sleep', 'infinity'],
    run.killed.signal,
    log.write,
  )
  runProgram(process).then(
    (code) => {
      log.end()
      if (!run.killed.signal.aborted) onEnd(code)
    },
    () => log.end(),
  )
}

/** Its processes stand still from their next step on, or go on. */
export function setFrozen(machine: FakeMachine, frozen: boolean, clock: Clock): void {
  if (machine.run) standStill(machine.run, frozen, clock)
  machine.status = { ...machine.status, frozen }
  wake(machine)
}

/** Ends the run and whatever was executed in it. `asked`: somebody wanted it, it did not end by itself. */
export function endRun(
  machine: FakeMachine,
  change: Partial<MachineStatus>,
  { asked }: { asked: boolean },
): void {
  machine.run?.killed.abort(asked ? runEnded() : new Error('the run ended'))
  machine.run = null
  machine.status = { ...machine.status, frozen: false, ...change }
  wake(machine)
}

export async function execInRun(
  machine: FakeMachine,
  request: ExecRequest,
  clock: Clock,
  onOutput: (output: ExecOutput) => void | Promise<void>,
  gone: AbortSignal,
): Promise<ExecExit> {
  const { run } = machine
  if (!run) throw notRunning(machine.spec.id)
  const user = request.user === undefined ? null : userNamed(request.user)
  const done = new AbortController()
  const timeout = new AbortController()
  clock.sleep(request.timeoutMs, done.signal).then(
    () => timeout.abort(new Error('the command took too long')),
    () => {},
  )
  const killed = AbortSignal.any([gone, run.killed.signal, timeout.signal])
  const write: FakeProcess['write'] = async (stream, data) => {
    if (data.length > 0) await untilAborted(killed, async () => await onOutput({ stream, data }))
  }
  try {
    const process = processIn(machine, run, clock, request.argv, killed, write)
    const exitCode = await runProgram({
      ...process,
      stdin: async () => request.stdin ?? Buffer.alloc(0),
      env: { ...process.env, ...request.env },
      cwd: request.cwd ?? process.cwd,
      user: user === null ? process.user : String(user.uid),
    })
    return { exitCode, timedOut: false }
  } catch (error) {
    gone.throwIfAborted()
    if (!killed.aborted) throw error
    const timedOut = timeout.signal.aborted
    if (!timedOut && isEngineError(killed.reason, 'run_ended')) throw killed.reason
    return { exitCode: timedOut ? TIMED_OUT_CODE : KILLED_CODE, timedOut }
  } finally {
    done.abort()
  }
}

export function queryLog(machine: FakeMachine, { after, since, generation, limit }: LogQuery): LogLine[] {
  const begin = after === null ? 0 : positionAfter(after)
  const lines = machine.log
    .slice(begin)
    .filter((_line, index) => generation === undefined || machine.logRuns[begin + index] === generation)
  if (after !== null) return lines.slice(0, limit)
  if (since !== null) return lines.filter((line) => line.at >= since).slice(0, limit)
  return limit === 0 ? [] : lines.slice(-limit)
}

export async function* followLog(machine: FakeMachine, after: string | null, gone: AbortSignal) {
  let position = after === null ? 0 : positionAfter(after)
  while (!gone.aborted) {
    const changed = machine.changed.promise
    const line = machine.log[position]
    if (line) {
      position += 1
      yield line
    } else if (machine.run) {
      await untilAborted(gone, async () => await changed).catch(() => {})
    } else {
      return
    }
  }
}

export function notRunning(id: string): EngineError {
  return new EngineError('not_running', `The machine ${id} is not running.`)
}

function runEnded(): EngineError {
  return new EngineError('run_ended', 'The machine was ended while the command ran.')
}

function commandOf(image: ImageConfig, run: RunSpec): string[] {
  if (run.entrypoint) return [...run.entrypoint, ...(run.cmd ?? [])]
  return [...image.entrypoint, ...(run.cmd ?? image.cmd)]
}

export function processIn(
  machine: FakeMachine,
  run: FakeRun,
  clock: Clock,
  argv: string[],
  killed: AbortSignal,
  write: FakeProcess['write'],
): FakeProcess {
  const imageEnv = machine.image.env.map((entry) => {
    const [name = '', ...value] = entry.split('=')
    return [name, value.join('=')]
  })
  return {
    argv,
    stdin: async () => Buffer.alloc(0),
    env: { ...Object.fromEntries(imageEnv), ...run.spec.env },
    cwd: machine.image.workingDir || '/',
    user: machine.image.user,
    hostname: run.spec.hostname,
    files: machine.files,
    write: async (stream, data) => {
      await whileFrozen(machine, killed)
      await write(stream, data)
    },
    sleep: async (ms) => {
      if (Number.isFinite(ms)) {
        await clock.sleep(ms, killed)
        return await whileFrozen(machine, killed)
      }
      // No timer: a server that idles must not keep a test's process alive.
      await untilAborted(killed, async () => await new Promise<never>(() => {}))
    },
  }
}

async function whileFrozen(machine: FakeMachine, killed: AbortSignal): Promise<void> {
  while (machine.status.frozen) await untilAborted(killed, async () => await machine.changed.promise)
}

/** Cuts a process's output into lines of its machine's log. */
function lineWriter(machine: FakeMachine, clock: Clock) {
  const partial = { stdout: '', stderr: '' }
  const append = (stream: ExecOutput['stream'], text: string) => appendLine(machine, clock, stream, text)
  return {
    write: async (stream: ExecOutput['stream'], data: Buffer) => {
      const lines = (partial[stream] + data.toString('utf8')).split('\n')
      partial[stream] = lines.pop() ?? ''
      for (const text of lines) append(stream, text)
      wake(machine)
      await new Promise(setImmediate)
    },
    end: () => {
      for (const stream of ['stdout', 'stderr'] as const) if (partial[stream]) append(stream, partial[stream])
      wake(machine)
    },
  }
}

/** Puts one line into the log of a machine, as its first process does by printing it. */
export function printLine(machine: FakeMachine, clock: Clock, text: string): void {
  appendLine(machine, clock, 'stdout', text)
  wake(machine)
}

function appendLine(machine: FakeMachine, clock: Clock, stream: ExecOutput['stream'], text: string): void {
  machine.log.push({ at: clock.now(), stream, text, cursor: `${machine.log.length + 1}` })
  machine.logRuns.push(machine.status.generation)
}

function wake(machine: FakeMachine): void {
  machine.changed.resolve()
  machine.changed = Promise.withResolvers()
}

/** A cursor is the number of lines up to and with the one it belongs to. */
function positionAfter(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw new EngineError('bad_cursor', 'This is no cursor of these logs.')
  return Number(cursor)
}
