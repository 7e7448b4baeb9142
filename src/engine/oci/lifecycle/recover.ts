// Recovers the state of an earlier engine: adopts runs that go on, records those that ended in the meantime, rolls
// back interrupted starts, and removes leftovers. Everything is found by name: only what carries our instance id is
// ours. A machine in disorder never prevents the adoption of others.

import { readdir } from 'node:fs/promises'
import type { RecoverReport } from '../../engine.ts'
import { putAside, putDiskAside, restoreWanted } from './aside.ts'
import { endAbandonedDumps } from '../checkpoint/orphans.ts'
import { isFrozen, listCgroups, thawGroup } from '../kernel/cgroups.ts'
import { removeAbandonedSnapshots } from '../storage/disk-copies.ts'
import { clearStaleQgroups, destroyDisk, listDisks } from '../storage/disks.ts'
import { killAbandonedExecs } from '../exec/kill-command.ts'
import { holdParts } from './deaths.ts'
import { resumeHeld } from './hold.ts'
import { recordEndIfExited } from './exits.ts'
import { newMachine, type EngineContext, type Machine } from '../machine/context.ts'
import { rollBackIncompleteForks } from '../records/fork-journal.ts'
import { discardCheckpoint, discardIncompleteCheckpoints } from '../checkpoint/checkpoints.ts'
import { isMonitorAlive } from '../runtime/monitor.ts'
import { adoptDrains } from '../exec/left-behind.ts'
import { adoptProcesses } from '../processes/adopt.ts'
import { applyRunningMark, loadRecords, type MachineRecord, saveRecord } from '../records/record.ts'
import { readSecrets } from '../records/secrets.ts'
import { cleanUpMachine, cleanUpRun, retry } from '../machine/clean-up-run.ts'
import { endStartup } from '../machine/startup.ts'
import { listContainers } from '../runtime/by-program.ts'
import { adoptPrograms } from './adopt-programs.ts'
import { joinShares } from '../storage/team-shares.ts'
import { destroyMachine } from './stop.ts'
import { nameFirstRun } from '../warm-pool/ready.ts'
import { isReadyName } from '../paths.ts'

/** Call it at the engine's start, before anything else. */
export async function adoptMachines(host: EngineContext): Promise<void> {
  await rollBackIncompleteForks(host.paths)
  const { records, unfinished, damaged } = await loadRecords(host.paths.machines)
  // They keep their addresses, since they may be wanted again.
  const aside = await loadRecords(host.paths.aside)
  for (const record of records) {
    if (record.egress !== null) record.egress.secrets = await readSecrets(host.paths, record.spec.id)
    host.machines.set(record.spec.id, newMachine(record, null))
    nameFirstRun(host.paths, record)
    applyRunningMark(host.paths.run(record.spec.id, record.generation), record)
  }
  for (const id of damaged) host.damaged.add(id)
  if (damaged.length > 0)
    host.log.error({ damaged }, 'records of machines cannot be read: their disks are kept')
  await adoptPrograms(host, records)
  await keepShares(host, records)
  await endAbandonedDumps(host)
  const network = await host.network.recover(
    [...records, ...aside.records].map(({ spec, address, state, egress }) => ({
      machineId: spec.id,
      group: spec.networkGroup,
      address,
      egress,
      running: state === 'running' && host.machines.has(spec.id),
    })),
  )
  const counts = { adopted: 0, ended: 0, lost: 0, undone: 0 }
  for (const machine of host.machines.values()) counts[await adopt(host, machine)] += 1
  await adoptProcesses(host)
  adoptDrains(host)
  const runs = await sweepRuns(host)
  for (const id of unfinished) await retry(host, id, () => destroyMachine(host, id))
  await keepStrayDisks(host)
  await removeAbandonedSnapshots(host.paths)
  host.swept = network.removed + runs + unfinished.length
  host.log.info({ ...counts, swept: host.swept, runs }, 'adopted machines of an earlier engine')
}

/**
 * Removes every machine that is not wanted any more. One with an unreadable record is put aside, because it cannot be
 * known whether it is wanted.
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

/** If it fails, the disks are there anyway: until the next start each is only limited by itself. */
async function keepShares(host: EngineContext, records: MachineRecord[]): Promise<void> {
  const specs = records.map(({ spec }) => spec)
  await joinShares(host.paths, specs, host.shareBytes).catch((error: unknown) => {
    host.log.error({ err: error }, 'disk shares of teams could not be restored')
  })
}

async function adopt(
  host: EngineContext,
  machine: Machine,
): Promise<'adopted' | 'ended' | 'lost' | 'undone'> {
  const { record } = machine
  const paths = host.paths.run(record.spec.id, record.generation)
  await discardIncompleteCheckpoints(host.paths, record.spec.id)
  // No caller was told that this run exists. Its generation stays used, so that its name is never reused.
  if (record.state === 'starting') return await lose(host, machine, 'undone')
  if (record.state !== 'running') return 'ended'
  await recordEndIfExited(host, machine)
  if (machine.record.state !== 'running') return 'ended'
  // Neither alive nor with an exit code: the host went down.
  if (!record.monitor || !isMonitorAlive(record.monitor)) return await lose(host, machine, 'lost')
  holdParts(machine)
  // Its start may not have been over.
  endStartup(host, machine, record.generation)
  // Its suspension was interrupted: a checkpoint would be outdated.
  await discardCheckpoint(host.paths, record.spec.id)
  await resumeHeld(host, machine, paths)
  machine.frozen = isFrozen(host.cgroups, paths.container)
  // An interrupted freeze may have stopped some of its processes.
  if (!machine.frozen) thawGroup(host.cgroups, paths.container)
  await killAbandonedExecs(host, machine, paths)
  return 'adopted'
}

async function lose<T>(host: EngineContext, machine: Machine, outcome: T): Promise<T> {
  const { record } = machine
  const paths = host.paths.run(record.spec.id, record.generation)
  Object.assign(record, { state: 'lost', monitor: null })
  // Until it is recorded, the next engine must find the same state.
  if (await retry(host, record.spec.id, () => saveRecord(host.paths, record))) {
    await cleanUpMachine(host, machine, paths)
  } else {
    machine.uncleanedRun = paths
  }
  return outcome
}

/**
 * Removes runs that no machine's record names: their processes, cgroups, mounts and directories. Returns how many.
 */
async function sweepRuns(host: EngineContext): Promise<number> {
  const live = new Set(
    [...host.machines.values()]
      .filter((machine) => machine.record.state === 'running')
      .map(({ record }) => host.paths.run(record.spec.id, record.generation).container),
  )
  // A run that has just ended is being removed by its own cleanup.
  await Promise.all([...host.machines.values()].map((machine) => machine.cleanup))
  const found = new Set([
    ...listCgroups(host.cgroups),
    ...(await readdir(host.paths.runs)),
    // A monitor that died while writing leaves the run's name with a suffix.
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

/**
 * Puts aside disks and volumes without a machine: their records were lost, or they came with a restored pool. Those of
 * machines that were made ahead, and that no create has taken over, go.
 */
async function keepStrayDisks(host: EngineContext): Promise<void> {
  const aside = new Set(await readdir(host.paths.aside))
  for (const id of await listDisks(host.paths)) {
    if (host.machines.has(id) || host.damaged.has(id) || aside.has(id)) continue
    // Nothing of a unit has been on it.
    const isUnused = isReadyName(id)
    await retry(host, id, () => (isUnused ? destroyDisk(host.paths, id) : putDiskAside(host, id)))
  }
  await clearStaleQgroups(host.paths)
}
