// Background processes of the fake: the programs of programs.ts, kept with what they printed.

import { constants } from 'node:os'
import { limits } from '../../../src/contract/limits.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import type {
  MachineProcess,
  MachineTask,
  ProcessOutput,
  ProcessRequest,
  ProcessSignal,
} from '../../../src/engine/process.ts'
import { EngineError } from '../../../src/engine/errors.ts'
import { untilAborted } from './faults.ts'
import { userNamed } from './files.ts'
import { type FakeMachine, KILLED_CODE, notRunning, processIn } from './machine.ts'
import { runProgram } from './programs.ts'

export type FakeBackground = {
  status: MachineProcess
  generation: number
  pieces: ProcessOutput[]
  /** Its reason is the exit code, or null for a process that is lost. */
  killed: AbortController
  changed: PromiseWithResolvers<void>
  input: FakeInput
  onEnd: (status: MachineProcess) => void
}

type FakeInput = { written: Buffer[]; ended: PromiseWithResolvers<void> }

const FIRST_PID = 100

export function startBackground(
  machine: FakeMachine,
  request: ProcessRequest,
  clock: Clock,
  onEnd: (status: MachineProcess) => void,
): MachineProcess {
  const { run } = machine
  if (!run) throw notRunning(machine.spec.id)
  const known = machine.processes.get(request.id)
  if (known) return statusOf(known)
  makeRoom(machine)
  const { id, shown, cwd, keepsAwake, tag } = request
  const user = request.user === undefined ? null : userNamed(request.user)
  const process: FakeBackground = {
    status: {
      id,
      shown,
      cwd,
      keepsAwake,
      tag: tag ?? null,
      takesInput: request.takesInput ?? false,
      awakeUntil: null,
      state: 'running',
      exitCode: null,
      pid: FIRST_PID + machine.processes.size,
      startedAt: clock.now(),
      endedAt: null,
      output: { from: 0, to: 0 },
    },
    generation: machine.status.generation,
    pieces: [],
    killed: new AbortController(),
    changed: Promise.withResolvers(),
    onEnd,
    input: { written: [request.stdin ?? Buffer.alloc(0)], ended: Promise.withResolvers() },
  }
  if (!request.takesInput) process.input.ended.resolve()
  machine.processes.set(id, process)
  const self = processIn(machine, run, clock, request.argv, process.killed.signal, async (stream, data) => {
    process.killed.signal.throwIfAborted()
    append(process, stream, data)
    await new Promise(setImmediate)
  })
  runProgram({
    ...self,
    stdin: async () => {
      await untilAborted(process.killed.signal, async () => await process.input.ended.promise)
      return Buffer.concat(process.input.written)
    },
    env: { ...self.env, ...request.env },
    cwd: cwd ?? self.cwd,
    user: user === null ? self.user : String(user.uid),
  }).then(
    (code) => end(process, code, clock),
    () => end(process, KILLED_CODE, clock),
  )
  return statusOf(process)
}

/** Its first process, and its background processes that run. */
export function tasksOf({ processes, run, spec }: FakeMachine): MachineTask[] {
  if (!run) throw notRunning(spec.id)
  const root = { parentPid: 0, uid: 0, owner: 'root', state: 'S' }
  const background = [...processes.values()].flatMap(({ status: { pid, shown, state } }) =>
    pid === null || state !== 'running' ? [] : [{ ...root, pid, groupId: pid, argv: shown }],
  )
  return [{ ...root, pid: 1, groupId: 1, argv: ['sleep', 'infinity'] }, ...background]
}

export function signalPid(
  { processes }: FakeMachine,
  pid: number,
  signal: ProcessSignal,
  clock: Clock,
): void {
  const found = [...processes.values()].find(({ status }) => status.pid === pid && status.state === 'running')
  if (found) signalBackground(found, signal, clock)
  else if (pid !== 1) throw new EngineError('unknown_process', 'No such process runs in the machine.')
}

export function statusesOf({ processes }: FakeMachine): MachineProcess[] {
  return [...processes.values()].map(statusOf)
}

export function findBackground({ processes }: FakeMachine, id: string): FakeBackground {
  const process = processes.get(id)
  if (!process) throw new EngineError('unknown_process', 'The machine has no such process.')
  return process
}

export function outputAfter({ pieces }: FakeBackground, after: number, maxBytes: number): ProcessOutput[] {
  const found: ProcessOutput[] = []
  let left = maxBytes
  for (const { stream, data, end } of pieces) {
    const begin = Math.max(after, end - data.length)
    const wanted = data.subarray(data.length - Math.max(0, end - begin)).subarray(0, left)
    if (wanted.length === 0) continue
    left -= wanted.length
    const before = found.at(-1)
    // A piece is what one stream has said until the other said something.
    if (before?.stream === stream) {
      before.data = Buffer.concat([before.data, wanted])
      before.end = begin + wanted.length
    } else found.push({ stream, data: wanted, end: begin + wanted.length })
  }
  return found
}

export async function* followBackground(process: FakeBackground, after: number, gone: AbortSignal) {
  for (let end = after; !gone.aborted; ) {
    const changed = process.changed.promise
    const isRunning = process.status.state === 'running'
    const pieces = outputAfter(process, end, limits.processPageBytes.max)
    for (const piece of pieces) {
      yield piece
      end = piece.end
    }
    if (pieces.length > 0) continue
    if (!isRunning) return
    await untilAborted(gone, async () => await changed).catch(() => {})
  }
}

export function signalBackground(process: FakeBackground, signal: ProcessSignal, clock: Clock): void {
  if (process.status.state !== 'running') throw new EngineError('process_ended', 'The process has ended.')
  if (signal === 'STOP' || signal === 'CONT') return
  end(process, 128 + (constants.signals[`SIG${signal}`] ?? 0), clock)
}

/** What waits for its input gets all of it when it ends. */
export function writeBackground(process: FakeBackground, data: Buffer, ends: boolean): number {
  if (process.status.state !== 'running') throw new EngineError('process_ended', 'The process has ended.')
  if (!process.status.takesInput) throw new EngineError('input_ended', 'The process takes no input.')
  process.input.written.push(data)
  if (ends) {
    process.status = { ...process.status, takesInput: false }
    process.input.ended.resolve()
  }
  return data.length
}

export function keepBackgroundAwake(process: FakeBackground, until: Date): void {
  if (process.status.state !== 'running') throw new EngineError('process_ended', 'The process has ended.')
  process.status = { ...process.status, awakeUntil: until }
}

export function forgetBackground(machine: FakeMachine, id: string, clock: Clock): void {
  const process = machine.processes.get(id)
  if (!process) return
  if (process.status.state === 'running' && machine.status.frozen)
    throw new EngineError('frozen', `The machine ${machine.spec.id} is frozen.`)
  end(process, KILLED_CODE, clock)
  machine.processes.delete(id)
}

/** Those of a run that is over. `code` null: lost. */
export function endBackground(machine: FakeMachine, code: number | null, clock: Clock): void {
  for (const process of machine.processes.values()) end(process, code, clock)
}

/** What a copy is told of those that run in its source. */
export function lostIn(source: FakeMachine, at: Date): Map<string, FakeBackground> {
  const running = [...source.processes].filter(([, { status }]) => status.state === 'running')
  return new Map(
    running.map(([id, process]) => [
      id,
      {
        ...process,
        status: {
          ...process.status,
          state: 'lost' as const,
          takesInput: false,
          endedAt: at,
          output: { from: 0, to: 0 },
        },
        pieces: [],
        killed: new AbortController(),
        changed: Promise.withResolvers(),
      },
    ]),
  )
}

function statusOf({ status }: FakeBackground): MachineProcess {
  return { ...status }
}

function append(process: FakeBackground, stream: 'stdout' | 'stderr', data: Buffer): void {
  if (data.length === 0) return
  const end = process.status.output.to + data.length
  process.pieces.push({ stream, data: Buffer.from(data), end })
  let kept = process.pieces.reduce((sum, piece) => sum + piece.data.length, 0)
  while (process.pieces[0] && kept - process.pieces[0].data.length >= limits.processOutputBytes)
    kept -= process.pieces.shift()?.data.length ?? 0
  process.status = { ...process.status, output: { from: end - kept, to: end } }
  wake(process)
}

function end(process: FakeBackground, exitCode: number | null, clock: Clock): void {
  if (process.status.state !== 'running') return
  const state = exitCode === null ? 'lost' : 'exited'
  process.status = { ...process.status, state, exitCode, takesInput: false, endedAt: clock.now() }
  process.killed.abort(new Error('the process ended'))
  wake(process)
  process.onEnd(statusOf(process))
}

function wake(process: FakeBackground): void {
  process.changed.resolve()
  process.changed = Promise.withResolvers()
}

function makeRoom({ processes }: FakeMachine): void {
  if (processes.size < limits.processes) return
  const over = [...processes.values()].find(({ status }) => status.state !== 'running')
  if (!over)
    throw new EngineError(
      'process_limit',
      `${limits.processes} processes of the machine run, and no more may.`,
    )
  processes.delete(over.status.id)
}
