// The operations on background processes: list, output, signals, end.

import { setTimeout as delay } from 'node:timers/promises'
import type { MachineRef } from '../../engine.ts'
import type { MachineProcess, ProcessOutput, ProcessSignal } from '../../process.ts'
import { EngineError } from '../../errors.ts'
import { HELPER } from '../runtime/bundle.ts'
import { getMachine, getRunning, type EngineContext, type Machine } from '../machine/context.ts'
import { execInMachine } from '../exec/exec.ts'
import { killExec } from '../exec/kill-command.ts'
import { settleWithRun, statusOfProcess } from './held.ts'
import type { Held } from './held-process.ts'
import { removeProcess, saveProcess } from './record.ts'

const SIGNAL_TIMEOUT_MS = 5000
const ENDS_WITHIN_MS = 5000
/** A follower that polled for each byte would cost more than it reads. */
const FOLLOW_EVERY_MS = 50
const FOLLOW_BYTES = 64 * 1024

export function listProcesses(host: EngineContext, id: string): MachineProcess[] {
  return [...getMachine(host, id).processes.values()].map(statusOfProcess)
}

export async function readProcess(
  host: EngineContext,
  id: string,
  process: string,
  after: number,
  maxBytes: number,
): Promise<ProcessOutput[]> {
  const machine = getMachine(host, id)
  const { ring } = getProcess(machine, process)
  await delay(host.tellingPace.spend(machine.record.spec.networkGroup, maxBytes))
  return ring.read(after, maxBytes)
}

export async function* followProcess(
  host: EngineContext,
  id: string,
  process: string,
  after: number,
  signal: AbortSignal,
): AsyncIterable<ProcessOutput> {
  const machine = getMachine(host, id)
  const held = getProcess(machine, process)
  let toldAt = 0
  for (let end = after; !signal.aborted; ) {
    // Both are read before the output: what arrives meanwhile is seen in the next iteration.
    const changed = held.changed.promise
    const isRunning = held.record.state === 'running'
    const pieces = held.ring.read(end, FOLLOW_BYTES)
    for (const piece of pieces) {
      if (signal.aborted) return
      yield piece
      end = piece.end
    }
    if (pieces.length > 0) {
      const bytes = pieces.reduce((sum, { data }) => sum + data.length, 0)
      const waitMs = host.tellingPace.spend(machine.record.spec.networkGroup, bytes)
      toldAt = performance.now()
      await delay(waitMs, undefined, { signal }).catch(() => {})
      continue
    }
    if (!isRunning) return
    await untilEither(changed, signal)
    await untilEither(Promise.race([rested(toldAt, signal), held.settled.promise]), signal)
  }
}

export async function signalProcess(
  host: EngineContext,
  ref: MachineRef,
  process: string,
  signal: ProcessSignal,
): Promise<void> {
  const machine = getRunning(host, ref)
  const { record } = getProcess(machine, process)
  if (record.state !== 'running' || record.generation !== ref.generation)
    throw new EngineError('process_ended', 'The process has ended.')
  if (signal === 'KILL' || record.pid === null) {
    await killExec(host, machine, host.paths.run(ref.id, ref.generation), process)
    return
  }
  const argv = [HELPER, 'kill', `-${signal}`, '--', `-${record.pid}`]
  const request = { argv, stdin: null, timeoutMs: SIGNAL_TIMEOUT_MS }
  await execInMachine(host, ref, request, () => {}, undefined, { asRoot: true })
}

export async function keepProcessAwake(
  host: EngineContext,
  id: string,
  process: string,
  until: Date,
): Promise<void> {
  const { record } = getProcess(getMachine(host, id), process)
  if (record.state !== 'running') throw new EngineError('process_ended', 'The process has ended.')
  record.awakeUntil = until
  await saveProcess(host.paths, id, record)
}

export async function forgetProcess(host: EngineContext, id: string, process: string): Promise<void> {
  const machine = getMachine(host, id)
  const held = machine.processes.get(process)
  if (!held) return
  await held.begun.catch(() => {})
  if (held.record.state === 'running') await endProcess(host, machine, held)
  machine.processes.delete(process)
  await removeProcess(host.paths, id, process)
}

/** For the processes of a run that is over: its cleanup waits for their last output. */
export async function endProcesses(host: EngineContext, machine: Machine): Promise<void> {
  const running = [...machine.processes.values()].filter(({ record }) => record.state === 'running')
  await Promise.all(running.map((held) => settleWithRun(host, machine, held)))
}

async function endProcess(host: EngineContext, machine: Machine, held: Held): Promise<void> {
  if (machine.frozen) throw new EngineError('frozen', 'The machine is frozen.')
  const { id } = machine.record.spec
  const paths = host.paths.run(id, held.record.generation)
  await killExec(host, machine, paths, held.record.id)
  const late = new AbortController()
  const tooLate = delay(ENDS_WITHIN_MS, true, { signal: late.signal }).catch(() => true)
  const isLate = await Promise.race([held.settled.promise.then(() => false), tooLate])
  late.abort()
  if (isLate) throw new EngineError('timeout', 'The process did not end in time.')
}

export function getProcess({ processes }: Machine, id: string): Held {
  const held = processes.get(id)
  if (!held) throw new EngineError('unknown_process', 'The machine has no such process.')
  return held
}

/** What comes after a rest is told at once; of what comes byte by byte, many together. */
async function rested(toldAt: number, signal: AbortSignal): Promise<void> {
  const ms = toldAt + FOLLOW_EVERY_MS - performance.now()
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => {})
}

async function untilEither(changed: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>()
  const onAbort = () => aborted.resolve()
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) aborted.resolve()
  await Promise.race([changed, aborted.promise])
  signal.removeEventListener('abort', onAbort)
}
