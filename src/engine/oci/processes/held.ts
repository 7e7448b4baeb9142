// A background process in this engine: its record, its output, and, while it runs, its pipes. Its end is recorded
// once all of its output until then has been read.

import { setTimeout as delay } from 'node:timers/promises'
import type { MachineProcess } from '../../process.ts'
import { removeChild } from '../kernel/cgroup-children.ts'
import type { EngineContext, Machine } from '../machine/context.ts'
import { reapOrphans } from '../kernel/children.ts'
import { leaveBehind } from '../exec/left-behind.ts'
import { available, openReader } from '../kernel/pipes.ts'
import { retry } from '../machine/clean-up-run.ts'
import type { Held, Output, Readers } from './held-process.ts'
import { endKeeper, type Pipes } from './keeper.ts'
import { type ProcessRecord, saveProcess } from './record.ts'
import { openRing } from './ring.ts'
import { readReport } from './wrapper.ts'

const REPORT_BYTES = 256
const KILLED_CODE = 137
const LOOK_MS = 2
/** How long to read the remaining output of a process whose run has ended. */
const LET_GO_AFTER_MS = 3000

export function newHeld(host: EngineContext, machineId: string, record: ProcessRecord): Held {
  const settled = Promise.withResolvers<void>()
  if (record.state !== 'running') settled.resolve()
  return {
    record,
    ring: openRing(host.paths.machine(machineId).process(record.id)),
    begun: Promise.resolve(),
    keeper: null,
    input: null,
    written: Promise.resolve(),
    readers: null,
    unheard: false,
    ending: false,
    settled,
    changed: Promise.withResolvers(),
  }
}

export function statusOfProcess({ record, ring }: Held): MachineProcess {
  const { generation: _run, ...process } = record
  return { ...process, output: ring.bounds() }
}

/** Reads only the report: stderr may first contain the runtime's own error. `first`: what was already read of it. */
export function openReaders(pipes: Pipes, first = ''): Readers {
  let said = first
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const report = openReader(pipes.report)
  const look = () => {
    const { pid, exitCode } = readReport(said)
    if (pid !== null) begun.resolve()
    if (exitCode !== null) over.resolve()
  }
  report.on('data', (data: Buffer) => {
    said = (said + data.toString('latin1')).slice(0, REPORT_BYTES)
    look()
    // Another program writes to it: a report that was tampered with is ignored from then on.
    if (said.length === REPORT_BYTES) report.destroy()
  })
  report.on('close', () => {
    begun.resolve()
    over.resolve()
  })
  look()
  const output = (fd: number): Output => ({
    socket: openReader(fd),
    fd,
    taken: 0,
    failed: false,
  })
  const outputs = [output(pipes.stdout), output(pipes.stderr)]
  return { outputs, report, said: () => readReport(said), begun: begun.promise, reportOver: over.promise }
}

/** Reads its output from now on, and records its end. */
export function follow(host: EngineContext, machine: Machine, held: Held, readers: Readers): void {
  held.readers = readers
  for (const [index, output] of readers.outputs.entries())
    take(host, machine, held, output, index === 0 ? 'stdout' : 'stderr')
  readers.reportOver
    .then(async () => {
      // Closed with this engine: the next one continues.
      if (held.readers === readers) await settle(host, machine, held)
    })
    .catch((error: unknown) => host.log.error({ err: error }, 'end of a process was not recorded'))
}

function take(
  host: EngineContext,
  machine: Machine,
  held: Held,
  output: Output,
  stream: 'stdout' | 'stderr',
): void {
  const { socket } = output
  socket.on('data', (data: Buffer) => {
    output.taken += data.length
    try {
      held.ring.append({ stream, data })
    } catch (error) {
      if (!output.failed)
        host.log.warn({ err: error, machine: machine.record.spec.id }, 'output of a process was not kept')
      output.failed = true
    }
    wake(held)
    const waitMs = host.takingPace.spend(machine.record.spec.networkGroup, data.length)
    if (waitMs < 1) return
    socket.pause()
    setTimeout(() => socket.resume(), waitMs)
  })
}

/** Stops following a process whose run is over, even if other processes hold its pipes. */
export async function settleWithRun(host: EngineContext, machine: Machine, held: Held): Promise<void> {
  await held.begun.catch(() => {})
  const late = new AbortController()
  await Promise.race([
    held.settled.promise,
    delay(LET_GO_AFTER_MS, undefined, { signal: late.signal }).catch(() => {}),
  ])
  late.abort()
  if (held.record.state === 'running') await settle(host, machine, held)
  await held.settled.promise
}

/** What was in its pipes when it ended is its own; what children that it left behind say later is not. */
async function takeRest({ outputs }: Readers): Promise<void> {
  const wanted = outputs.map(({ socket, fd, taken }) =>
    socket.destroyed ? taken : taken + socket.readableLength + available(fd),
  )
  const isTaken = () =>
    outputs.every(({ socket, taken }, index) => socket.destroyed || taken >= (wanted[index] ?? 0))
  while (!isTaken()) await delay(LOOK_MS)
}

async function settle(host: EngineContext, machine: Machine, held: Held): Promise<void> {
  const { readers, record } = held
  if (readers) await takeRest(readers)
  if (held.ending || record.state !== 'running') return
  const code = readers?.said().exitCode ?? null
  const isLost = code === null && (readers === null || held.unheard || machine.losesProcesses)
  await endAs(host, machine, held, isLost ? null : (code ?? KILLED_CODE))
}

/** `exitCode` null: lost. */
export async function endAs(
  host: EngineContext,
  machine: Machine,
  held: Held,
  exitCode: number | null,
): Promise<void> {
  const { record } = machine
  // Before the first await, so that two callers cannot both record one end.
  held.ending = true
  leaveOutputs(host, machine, held)
  closeReaders(held)
  held.ring.close()
  const state: ProcessRecord['state'] = exitCode === null ? 'lost' : 'exited'
  const ended = { ...held.record, state, exitCode, takesInput: false, endedAt: host.clock.now() }
  // The next engine must report the same end. The keeper is ended last: as long as it exists, the next engine looks.
  await retry(host, record.spec.id, () =>
    host.effect('engine.process.end', () => saveProcess(host.paths, record.spec.id, ended)),
  )
  Object.assign(held.record, ended)
  endKeepers(held)
  const paths = host.paths.run(record.spec.id, held.record.generation)
  removeChild(host.cgroups, paths.container, held.record.id)
  // With runc we must reap it, or it would count as one of the machine's processes for ever.
  void reapOrphans()
  wake(held)
  host.events.emit('processEnded', { machine: record.spec.id, process: statusOfProcess(held) })
  held.settled.resolve()
}

/** Children of an ended process may go on printing. */
function leaveOutputs(host: EngineContext, machine: Machine, { readers, record }: Held): void {
  if (readers === null || record.generation !== machine.record.generation) return
  const open = readers.outputs.filter(({ socket }) => !socket.destroyed)
  leaveBehind(
    host,
    machine,
    open.map(({ fd }) => fd),
  )
}

export function endKeepers(held: Held): void {
  for (const keeper of [held.keeper, held.input]) if (keeper) endKeeper(keeper)
  held.keeper = null
  held.input = null
}

/** Leaves the process to the next reader. */
export function closeReaders(held: Held): void {
  const { readers } = held
  held.readers = null
  if (readers) destroyReaders(readers)
}

export function destroyReaders({ report, outputs }: Readers): void {
  report.destroy()
  for (const { socket } of outputs) socket.destroy()
}

function wake(held: Held): void {
  held.changed.resolve()
  held.changed = Promise.withResolvers()
}
