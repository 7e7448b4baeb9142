// Creates machines as copies of others, all or none (design 3 "Fork"). Their disks and volumes are snapshots of one
// instant, for which running sources are paused; everything else is done before or after. A failure is rolled back;
// after a crash the next engine rolls back, because it finds no records (journal.ts).
//
// Locks: first of the copies, then of the sources, each in the order of their ids. A fork that waits for a source
// only holds locks of machines that do not exist yet, which are not sources: so forks never deadlock.

import { allSettled } from '../../../lib/concurrency/all-settled.ts'
import type { Forked, ForkSpec } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { completeCopy, snapshotDisk } from '../storage/disks.ts'
import { recordEndIfExited } from '../lifecycle/exits.ts'
import { syncDisks } from './sync.ts'
import { forgetFork, recordFork } from '../records/fork-journal.ts'
import { standingOf } from '../lifecycle/hold.ts'
import { chooseDumps, commitForFork, dumpForFork } from './dump-memory.ts'
import { whileQuiesced } from './quiesce.ts'
import { getMachine, newMachine, statusOf, type EngineContext, type Machine } from '../machine/context.ts'
import { hasCheckpoint } from '../checkpoint/checkpoints.ts'
import type { Attachment } from '../network/types.ts'
import { tellOfProcesses } from '../processes/adopt.ts'
import { checkReserve } from '../storage/pool.ts'
import { beginMachine, saveRecord } from '../records/record.ts'
import { removeMachineState } from '../machine/remove-state.ts'

type Sources = Map<string, Machine>

export async function forkMachines(host: EngineContext, forks: ForkSpec[]): Promise<Forked[]> {
  const missing = forks.filter(({ id }) => !host.machines.has(id))
  const made = await lockAll(host, idsOf(missing), async () => {
    // Another call has created one of them in the meantime.
    if (missing.some(({ id }) => host.machines.has(id))) return null
    return await makeCopies(host, missing)
  })
  if (made === null) return await forkMachines(host, forks)
  return await Promise.all(forks.map(({ id }) => forkedOf(host, made.get(id) ?? getMachine(host, id))))
}

async function makeCopies(host: EngineContext, forks: ForkSpec[]): Promise<Map<string, Machine>> {
  if (forks.length === 0) return new Map()
  const sources = new Map(
    idsOf(forks.map(({ source }) => source)).map((id) => [id, getSource(host, id)] as const),
  )
  await checkReserve(host.paths, host.reserveGb)
  const images = [...sources.values()].map(({ record }) => record.spec.imageDigest)
  // A source may be destroyed before the copies are recorded, but their image must stay.
  return await host.images.hold(images, () => copySources(host, forks, sources))
}

async function copySources(
  host: EngineContext,
  forks: ForkSpec[],
  sources: Sources,
): Promise<Map<string, Machine>> {
  const ids = idsOf(forks)
  try {
    const [attachments, dumped] = await allSettled([
      allSettled(forks.map((fork) => attach(host, fork))),
      copyDisksAndMemory(host, forks, sources),
    ])
    const copies = forks.map((fork, i) => describe(fork, sources.get(fork.source.id), attachments[i]))
    await allSettled([
      ...copies.map(({ record }) =>
        host.effect('engine.fork.disk', () => completeCopy(host.paths, record.spec)),
      ),
      commitForFork(host, dumped, sources),
    ])
    for (const [i, copy] of copies.entries())
      await tellOfProcesses(host, sources.get(forks[i]?.source.id ?? ''), copy)
    await saveRecords(host, ids, copies)
    for (const copy of copies) host.machines.set(copy.record.spec.id, copy)
    return new Map(copies.map((copy) => [copy.record.spec.id, copy]))
  } catch (error) {
    const removed = await Promise.allSettled(ids.map((id) => removeMachineState(host, id)))
    for (const each of removed)
      if (each.status === 'rejected')
        host.log.error({ err: each.reason }, 'copy of a failed fork was not removed')
    await forgetFork(host.paths, ids)
    throw error
  }
}

async function copyDisksAndMemory(
  host: EngineContext,
  forks: ForkSpec[],
  sources: Sources,
): Promise<ForkSpec[]> {
  await allSettled([
    syncDisks(host, forks, sources),
    allSettled(idsOf(forks).map((id) => beginMachine(host.paths, id))),
  ])
  return await lockAll(host, [...sources.keys()], () => copyAtOnce(host, forks, sources))
}

/** Copies at one instant, whatever the sources do. Returns the copies that will get memory. */
async function copyAtOnce(host: EngineContext, forks: ForkSpec[], sources: Sources): Promise<ForkSpec[]> {
  for (const [id, source] of sources) {
    if (getSource(host, id) !== source)
      throw new EngineError('unknown_machine', 'The id belongs to another machine.')
    await recordEndIfExited(host, source)
  }
  const chosen = chooseDumps(host, forks, sources)
  const snapshot = ({ id, source }: ForkSpec) =>
    host.effect('engine.fork.snapshot', () =>
      snapshotDisk(host.paths, getSource(host, source.id).record.spec, id),
    )
  // One that saves itself writes to its disk what it has of it in memory: its disk is copied after that.
  const savesItself = ({ source }: ForkSpec) => {
    const machine = getSource(host, source.id)
    return chosen.has(machine) && standingOf(host, machine) !== null
  }
  return await whileQuiesced(host, [...sources.values()], new Set(chosen.keys()), async () => {
    const [dumped] = await allSettled([
      dumpForFork(host, chosen),
      ...forks.filter((fork) => !savesItself(fork)).map(snapshot),
    ])
    await allSettled(forks.filter(savesItself).map(snapshot))
    // A destruction kills without waiting for the lock, and thaws the machine to do so.
    for (const id of sources.keys()) getSource(host, id)
    return dumped
  })
}

/** A single copy is committed by its record; several are committed by a note that lists them. */
async function saveRecords(host: EngineContext, ids: string[], copies: Machine[]): Promise<void> {
  const isOne = copies.length === 1
  if (!isOne) await host.effect('engine.fork.begin', () => recordFork(host.paths, ids))
  await allSettled(
    copies.map(({ record }) => host.effect('engine.fork.record', () => saveRecord(host.paths, record))),
  )
  if (!isOne) await host.effect('engine.fork.end', () => forgetFork(host.paths, ids))
}

function describe(fork: ForkSpec, source?: Machine, attachment?: Attachment): Machine {
  if (!source || !attachment) throw new Error('a copy has neither a source nor a network')
  const spec = { ...source.record.spec, id: fork.id, networkGroup: fork.networkGroup }
  const { address } = attachment
  const forkGeneration = source.record.forkGeneration + 1
  return newMachine(
    {
      spec,
      address,
      forkGeneration,
      // What saved its memory restores it.
      ...(source.record.program === undefined ? {} : { program: source.record.program }),
      generation: 0,
      state: 'created',
      monitor: null,
      exit: null,
      egress: null,
    },
    attachment,
  )
}

function attach(host: EngineContext, { id, networkGroup }: ForkSpec): Promise<Attachment> {
  return host.effect('engine.fork.network', () =>
    host.network.attach({ machineId: id, group: networkGroup, address: null }),
  )
}

function getSource(host: EngineContext, id: string): Machine {
  const machine = getMachine(host, id)
  if (machine.destroySignal.signal.aborted)
    throw new EngineError('unknown_machine', 'The machine to be copied is being destroyed.')
  return machine
}

async function forkedOf(host: EngineContext, machine: Machine): Promise<Forked> {
  const hasMemory = await hasCheckpoint(host, { id: machine.record.spec.id, generation: 0 })
  return { status: statusOf(machine), copied: hasMemory ? 'memory' : 'disk' }
}

/** Returns each id once, in the order in which they are locked. */
function idsOf(named: { id: string }[]): string[] {
  return [...new Set(named.map(({ id }) => id))].toSorted()
}

function lockAll<T>(host: EngineContext, [id, ...others]: string[], work: () => Promise<T>): Promise<T> {
  return id === undefined ? work() : host.lock(id, () => lockAll(host, others, work))
}
