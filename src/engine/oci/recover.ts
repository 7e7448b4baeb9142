// Finds out what an engine before us left: adopts runs that go on, records those that ended meanwhile, takes
// back starts that were cut short, and removes what belongs to no machine. All of it by name: only what
// carries our instance is ours.

import { readdir } from 'node:fs/promises'
import type { RecoverReport } from '../engine.ts'
import { isFrozen, listCgroups, thawGroup } from './cgroups.ts'
import { clearStaleQgroups, destroyDisk, listDisks } from './disks.ts'
import { settleEnd } from './exits.ts'
import { getRuntime, newMachine, type Host, type Machine } from './host.ts'
import { isMonitorAlive } from './monitor.ts'
import { loadRecords, saveRecord } from './record.ts'
import { takeBack } from './remains.ts'
import { destroyMachine } from './stop.ts'

/** At the engine's start, before anything else is asked of it. */
export async function adoptMachines(host: Host): Promise<void> {
  const { records, unfinished } = await loadRecords(host.paths)
  for (const record of records) host.machines.set(record.spec.id, newMachine(record, null))
  await host.network.recover(
    records.map(({ spec, address, state }) => ({
      machineId: spec.id,
      group: spec.networkGroup,
      address,
      running: state === 'running',
    })),
  )
  const counts = { adopted: 0, ended: 0, lost: 0, undone: 0 }
  for (const machine of host.machines.values()) counts[await adopt(host, machine)] += 1
  await sweepRuns(host)
  for (const id of unfinished) await destroyMachine(host, id)
  await sweepDisks(host)
  host.log.info(counts, 'machines of an earlier engine')
}

/** Removes every machine that nobody wants any more. */
export async function recoverMachines(host: Host, wanted: string[]): Promise<RecoverReport> {
  const keep = new Set(wanted)
  const unwanted = [...host.machines.keys()].filter((id) => !keep.has(id))
  for (const id of unwanted) await destroyMachine(host, id)
  await clearStaleQgroups(host.paths)
  const states = [...host.machines.values()].map((machine) => machine.record.state)
  return {
    adopted: states.filter((state) => state === 'running').length,
    removed: unwanted.length,
    lost: states.filter((state) => state === 'lost').length,
  }
}

async function adopt(host: Host, machine: Machine): Promise<'adopted' | 'ended' | 'lost' | 'undone'> {
  const { record } = machine
  const paths = host.paths.run(record.spec.id, record.generation)
  if (record.state === 'starting') {
    // Nobody was told that this run exists. The generation stays used up, so that its name is never reused.
    await takeBack(host, getRuntime(host, record.spec.isolation), paths)
    Object.assign(record, { state: 'lost', monitor: null })
    await saveRecord(host.paths, record)
    return 'undone'
  }
  if (record.state !== 'running') return 'ended'
  await settleEnd(host, machine)
  if (record.state !== 'running') return 'ended'
  if (record.monitor && isMonitorAlive(record.monitor)) {
    machine.frozen = isFrozen(host.cgroups, paths.container)
    // A freeze that was cut short may have stopped some of its processes.
    if (!machine.frozen) thawGroup(host.cgroups, paths.container)
    return 'adopted'
  }
  // Neither alive nor with an exit code: the host went down under it.
  await takeBack(host, getRuntime(host, record.spec.isolation), paths)
  await host.network.detach(record.spec.id)
  Object.assign(record, { state: 'lost', monitor: null })
  await saveRecord(host.paths, record)
  return 'lost'
}

/** Runs that no machine's record names: their processes, cgroups, mounts and directories. */
async function sweepRuns(host: Host): Promise<void> {
  const live = new Set(
    [...host.machines.values()]
      .filter((machine) => machine.record.state === 'running')
      .map(({ record }) => host.paths.run(record.spec.id, record.generation).container),
  )
  const found = new Set([...listCgroups(host.cgroups), ...(await readdir(host.paths.runs))])
  for (const container of found) {
    const match = /^(.+)-(\d+)$/.exec(container)
    if (live.has(container) || !match) continue
    for (const runtime of host.runtimes.values()) {
      await takeBack(host, runtime, host.paths.run(match[1] ?? '', Number(match[2])))
    }
  }
}

async function sweepDisks(host: Host): Promise<void> {
  for (const id of await listDisks(host.paths)) {
    if (!host.machines.has(id)) await destroyDisk(host.paths, id)
  }
  await clearStaleQgroups(host.paths)
}
