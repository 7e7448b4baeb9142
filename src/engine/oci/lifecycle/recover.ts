// Finds out what an engine before us left: adopts runs that go on, records those that ended meanwhile, takes
// back starts that were cut short, and removes what belongs to no machine. All of it by name: only what
// carries our instance is ours. One machine in disorder never keeps the others from being adopted.

import { readdir } from 'node:fs/promises'
import type { RecoverReport } from '../../engine.ts'
import { putAside, putDiskAside, restoreWanted } from './aside.ts'
import { endAbandonedDumps } from '../checkpoint/orphans.ts'
import { isFrozen, listCgroups, thawGroup } from '../kernel/cgroups.ts'
import { removeAbandonedSnapshots } from '../snapshot/disks.ts'
import { clearStaleQgroups, listDisks } from '../storage/disks.ts'
import { killAbandonedExecs } from '../exec/exec.ts'
import { holdParts } from './deaths.ts'
import { recordEndIfExited } from './exits.ts'
import { newMachine, type EngineContext, type Machine } from '../context.ts'
import { rollBackIncompleteForks } from '../snapshot/journal.ts'
import { resumeAbandoned } from '../snapshot/quiesce.ts'
import { discardCheckpoint, discardIncompleteCheckpoints } from '../checkpoint/images.ts'
import { isMonitorAlive } from '../runtime/monitor.ts'
import { adoptProcesses } from '../processes/adopt.ts'
import { loadRecords, type MachineRecord, saveRecord } from './record.ts'
import { cleanUpMachine, cleanUpRun, retry } from './cleanup.ts'
import { listContainers } from '../runtime/runtime.ts'
import { joinShares } from '../storage/team-shares.ts'
import { destroyMachine } from './stop.ts'

/** At the engine's start, before anything else is asked of it. */
export async function adoptMachines(host: EngineContext): Promise<void> {
  await rollBackIncompleteForks(host.paths)
  const { records, unfinished, damaged } = await loadRecords(host.paths.machines)
  // They keep their addresses: they may be wanted again.
  const aside = await loadRecords(host.paths.aside)
  for (const record of records) host.machines.set(record.spec.id, newMachine(record, null))
  for (const id of damaged) host.damaged.add(id)
  if (damaged.length > 0)
    host.log.error({ damaged }, 'records of machines cannot be read: their disks are kept')
  await keepShares(host, records)
  await endAbandonedDumps(host)
  const network = await host.network.recover(
    [...records, ...aside.records].map(({ spec, address, state }) => ({
      machineId: spec.id,
      group: spec.networkGroup,
      address,
      running: state === 'running' && host.machines.has(spec.id),
    })),
  )
  const counts = { adopted: 0, ended: 0, lost: 0, undone: 0 }
  for (const machine of host.machines.values()) counts[await adopt(host, machine)] += 1
  await adoptProcesses(host)
  const runs = await sweepRuns(host)
  for (const id of unfinished) await retry(host, id, () => destroyMachine(host, id))
  await keepStrayDisks(host)
  await removeAbandonedSnapshots(host.paths)
  host.swept = network.removed + runs + unfinished.length
  host.log.info({ ...counts, swept: host.swept, runs }, 'machines of an earlier engine')
}

/**
 * Removes every machine that nobody wants any more. One whose record cannot be read is put aside: nobody who wanted it
 * could have said so.
 */
export async function recoverMachines(host: EngineContext, wanted: string[]): Promise<RecoverReport> {
  const keep = new Set(wanted)
  await restoreWanted(host, keep)
  const unwanted = [...host.machines.keys()].filter((id) => !keep.has(id))
  const failures: unknown[] = []
  for (const id of [...host.damaged].filter((each) => !keep.has(each)))
    await putAside(host, id, 'damaged').catch((error: unknown) => failures.push(error))
  for (const id of unwanted) await destroyMachine(host, id).catch((error: unknown) => failures.push(error))
  await clearStaleQgroups(host.paths)
  if (failures.length > 0) throw failures[0]
  const states = [...host.machines.values()].map((machine) => machine.record.state)
  const removed = unwanted.length + host.swept
  host.swept = 0
  return {
    adopted: states.filter((state) => state === 'running').length,
    removed,
    lost: states.filter((state) => state === 'lost').length,
  }
}

/** Disks are there all the same where it fails: they are bounded each by itself until the next start. */
async function keepShares(host: EngineContext, records: MachineRecord[]): Promise<void> {
  const specs = records.map(({ spec }) => spec)
  await joinShares(host.paths, specs, host.shareBytes).catch((error: unknown) => {
    host.log.error({ err: error }, 'the shares of teams could not be put in order')
  })
}

async function adopt(
  host: EngineContext,
  machine: Machine,
): Promise<'adopted' | 'ended' | 'lost' | 'undone'> {
  const { record } = machine
  const paths = host.paths.run(record.spec.id, record.generation)
  await discardIncompleteCheckpoints(host.paths, record.spec.id)
  // Nobody was told that this run exists. The generation stays used up, so that its name is never reused.
  if (record.state === 'starting') return await lose(host, machine, 'undone')
  if (record.state !== 'running') return 'ended'
  await recordEndIfExited(host, machine)
  if (machine.record.state !== 'running') return 'ended'
  // Neither alive nor with an exit code: the host went down under it.
  if (!record.monitor || !isMonitorAlive(record.monitor)) return await lose(host, machine, 'lost')
  holdParts(machine)
  // It was about to be ended and was not: what was kept of it is of the past.
  await discardCheckpoint(host.paths, record.spec.id)
  await resumeAbandoned(host, paths)
  machine.frozen = isFrozen(host.cgroups, paths.container)
  // A freeze that was cut short may have stopped some of its processes.
  if (!machine.frozen) thawGroup(host.cgroups, paths.container)
  await killAbandonedExecs(host, machine, paths)
  return 'adopted'
}

async function lose<T>(host: EngineContext, machine: Machine, outcome: T): Promise<T> {
  const { record } = machine
  const paths = host.paths.run(record.spec.id, record.generation)
  Object.assign(record, { state: 'lost', monitor: null })
  // Until it is written down, the next engine must find the same again.
  if (await retry(host, record.spec.id, () => saveRecord(host.paths, record))) {
    await cleanUpMachine(host, machine, paths)
  } else {
    machine.uncleanedRun = paths
  }
  return outcome
}

/** Runs that no machine's record names: their processes, cgroups, mounts and directories. Says how many. */
async function sweepRuns(host: EngineContext): Promise<number> {
  const live = new Set(
    [...host.machines.values()]
      .filter((machine) => machine.record.state === 'running')
      .map(({ record }) => host.paths.run(record.spec.id, record.generation).container),
  )
  // What ended just now is being removed by its own clean-up.
  await Promise.all([...host.machines.values()].map((machine) => machine.cleanup))
  const found = new Set([
    ...listCgroups(host.cgroups),
    ...(await readdir(host.paths.runs)),
    // A monitor that died while it wrote has left the name of its run with something behind it.
    ...(await readdir(host.paths.exits)).map((name) => name.replace(/\..*$/, '')),
    ...(await listContainers(host.paths.runtimeRoot)),
  ])
  let swept = 0
  for (const container of found) {
    const [, id = '', generation] = /^(.+)-(\d+)$/.exec(container) ?? []
    if (generation === undefined || live.has(container)) continue
    const paths = host.paths.run(id, Number(generation))
    if (await retry(host, id, () => cleanUpRun(host, paths))) swept += 1
  }
  return swept
}

/** Disks and volumes of no machine: their records were lost, or they came with a restored pool. */
async function keepStrayDisks(host: EngineContext): Promise<void> {
  const aside = new Set(await readdir(host.paths.aside))
  for (const id of await listDisks(host.paths)) {
    if (host.machines.has(id) || host.damaged.has(id) || aside.has(id)) continue
    await retry(host, id, () => putDiskAside(host, id))
  }
  await clearStaleQgroups(host.paths)
}
