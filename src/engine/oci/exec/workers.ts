// Workers: programs of ours in a machine that answer one request after another, as the persistent workers of Bazel do. A sandbox
// takes longer to start a program than such a program takes to answer. So one that has answered waits for the next request, and is
// ended when none has come for a while (decisions/commands.md).
//
// It is a command in every other respect. A unit that ends or tampers with one harms its own next request alone; and one that prints
// unasked is killed.

import { writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import type { MachineRef } from '../../engine.ts'
import type { ExecExit, ExecOutput } from '../../exec.ts'
import type { OnOutput } from '../kernel/pipes.ts'
import { driverOf, type EngineContext, type Machine } from '../machine/context.ts'
import type { Worker } from '../machine/workers.ts'
import type { Outcome } from '../runtime/attempt.ts'
import type { Process } from '../runtime/bundle.ts'
import { filesOf, markerOf, newExecName, removeFiles, withMarker } from './command.ts'
import { controlOf, launchDirectly } from './direct.ts'
import { killExec, signalInside } from './kill-command.ts'
import { leaveBehind } from './left-behind.ts'
import { untilEnd } from './until-end.ts'

/** How long one waits for a request. */
const WAITS_MS = 60_000
/** How many wait in a machine, … */
const MAX_WAITING = 4
/** … and on this host. Each has four descriptors of it, and some hundred kilobytes of its machine's memory. */
const MAX_ON_HOST = 256
/** How long one may take to see that no request comes any more. */
const ENDS_WITHIN_MS = 3000
const ANSWERED: Outcome = { kind: 'ended', exitCode: 0 }

/** Returns one that waits, or a new one. Null where commands are not started by the sandbox's own socket. */
export async function takeWorker(
  host: EngineContext,
  machine: Machine,
  process: Process,
): Promise<Worker | null> {
  const { workers, record } = machine
  const described = JSON.stringify(process)
  const isSame = (one: Worker) => one.described === described && one.generation === record.generation
  const waiting = [...workers].find(isSame)
  if (waiting === undefined) return await beginWorker(host, machine, process, described)
  workers.delete(waiting)
  clearTimeout(waiting.expiry)
  return waiting
}

type Call = {
  ref: MachineRef
  request: { argv: string[]; timeoutMs: number }
  stdin: Buffer
  onOutput: OnOutput
  signal: AbortSignal | undefined
}

/** It is the caller's. It ends as a command that it was started for: with 0, where it does not end before its answer has. */
export async function askWorker(
  host: EngineContext,
  machine: Machine,
  worker: Worker,
  { stdin, onOutput, ...call }: Call,
): Promise<ExecExit> {
  const { attempt, input, kill } = worker
  const outcome = Promise.withResolvers<Outcome>()
  const readerFailed = Promise.withResolvers<never>()
  worker.asked = { onOutput, settle: outcome.resolve, failReader: readerFailed.reject }
  input.write(stdin)
  const asked = { ...attempt, outcome: outcome.promise, readerFailed: readerFailed.promise }
  try {
    return await untilEnd(host, machine, asked, { ...call, onOutput, kill })
  } finally {
    if (worker.asked === null) keepWorker(host, machine, worker)
  }
}

async function beginWorker(
  host: EngineContext,
  machine: Machine,
  process: Process,
  described: string,
): Promise<Worker | null> {
  const driver = driverOf(host, machine)
  const { spec, generation } = machine.record
  const paths = host.paths.run(spec.id, generation)
  const control = driver.execDetaches ? null : await controlOf(driver, paths)
  if (control === null) return null
  const name = newExecName()
  const files = filesOf(paths, name)
  // It says to the next engine that this was begun.
  writeFileSync(files.processFile, '', { mode: 0o600 })
  const input = new PassThrough()
  const kill = async () => {
    worker.isOver = true
    await killExec(host, machine, paths, name)
  }
  const attempt = launchDirectly({
    control,
    container: paths.container,
    process: withMarker(process, markerOf(name)),
    stdin: input,
    onOutput: (output) => takeOutput(worker, output),
    kill,
    signalInside: (signal) => signalInside(host, machine, paths, name, signal),
    leave: (fds) => leaveBehind(host, machine, fds),
  })
  const worker: Worker = { described, generation, attempt, input, asked: null, isOver: false, kill }
  const onEnd = () => {
    worker.isOver = true
    machine.workers.delete(worker)
    clearTimeout(worker.expiry)
    removeFiles(files)
    worker.asked?.settle(attempt.outcome)
  }
  void attempt.outcome.then(onEnd, onEnd)
  return worker
}

/** A zero byte ends an answer. */
async function takeOutput(worker: Worker, { stream, data }: ExecOutput): Promise<void> {
  const { asked } = worker
  const end = stream === 'stdout' ? data.indexOf(0) : -1
  const isAsked = asked !== null && (end < 0 || end === data.length - 1)
  if (!isAsked) return await worker.kill()
  const said = end < 0 ? data : data.subarray(0, end)
  try {
    if (said.length > 0) await asked.onOutput({ stream, data: said })
  } catch (error) {
    asked.failReader(error)
    throw error
  }
  if (end < 0) return
  worker.asked = null
  asked.settle(ANSWERED)
}

function keepWorker(host: EngineContext, machine: Machine, worker: Worker): void {
  if (worker.isOver) return
  const isRoom = machine.workers.size < MAX_WAITING && countWaiting(host) < MAX_ON_HOST
  if (!isRoom || machine.ending) return dismiss(host, machine, worker)
  machine.workers.add(worker)
  worker.expiry = setTimeout(() => dismiss(host, machine, worker), WAITS_MS).unref()
}

/** One whose input ends ends by itself, unless its unit keeps it. */
function dismiss(host: EngineContext, machine: Machine, worker: Worker): void {
  machine.workers.delete(worker)
  worker.input.end()
  const kill = () =>
    void worker.kill().catch((error: unknown) => host.log.warn({ err: error }, 'a worker was not killed'))
  worker.expiry = setTimeout(kill, ENDS_WITHIN_MS).unref()
}

function countWaiting(host: EngineContext): number {
  let count = 0
  for (const { workers } of host.machines.values()) count += workers.size
  return count
}
