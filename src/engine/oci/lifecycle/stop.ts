// Ends runs and machines. Both work in any state of a machine, and neither waits for a runtime that does not answer:
// processes that do not end are killed through their cgroup, and a monitor that does not report is killed too.

import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { killAll, listCgroups, thawGroup } from '../kernel/cgroups.ts'
import { endedWithin, recordKilled } from './exits.ts'
import { driverOf, getMachine, type EngineContext, type Machine } from '../machine/context.ts'
import { discardCheckpoint } from '../checkpoint/checkpoints.ts'
import { removeMachineState } from '../machine/remove-state.ts'
import { cleanUpRun } from '../machine/clean-up-run.ts'
import { dropReady, FIRST_GENERATION } from '../warm-pool/ready.ts'

/** How long a monitor may take to report that its run was killed. */
const REPORT_WAIT_MS = 3000

export function stopMachine(host: EngineContext, ref: MachineRef, graceMs: number): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = getMachine(host, ref.id)
    const { record } = machine
    if (record.generation !== ref.generation || record.state !== 'running') await machine.cleanup
    else await endGracefully(host, machine, graceMs)
    // The run was suspended: its checkpoint is discarded.
    if (record.generation === ref.generation) await discardCheckpoint(host.paths, ref.id)
  })
}

/** The machine must be locked and running. */
export async function endGracefully(host: EngineContext, machine: Machine, graceMs: number): Promise<void> {
  machine.ending = true
  if (graceMs > 0) await askToEnd(host, machine, graceMs)
  await endRun(host, machine)
  await machine.cleanup
}

/** Asks and measures the time concurrently: a runtime that hangs must not extend the grace period. */
async function askToEnd(host: EngineContext, machine: Machine, graceMs: number): Promise<void> {
  const { spec, generation } = machine.record
  const { container } = host.paths.run(spec.id, generation)
  const driver = driverOf(host, machine)
  const over = new AbortController()
  thawGroup(host.cgroups, container)
  machine.frozen = false
  host
    .effect('engine.stop.signal', () => driver.terminate(container, over.signal))
    .catch((error: unknown) =>
      host.log.warn({ err: error, machine: spec.id }, 'a machine was not asked to end'),
    )
  await endedWithin(host, machine, graceMs)
  over.abort()
}

export async function destroyMachine(host: EngineContext, id: string): Promise<void> {
  const doomed = host.machines.get(id)
  if (doomed) {
    doomed.ending = true
    // Before the lock: operations that hold it for the machine give up, and end as soon as its processes do.
    doomed.destroySignal.abort()
  }
  const ranBefore = doomed?.record.state === 'running' ? doomed.record.generation : 0
  await host.effect('engine.destroy.kill', () => killRunsOf(host, id))
  await host.lock(id, async () => {
    const machine = host.machines.get(id)
    if (machine) {
      await endRun(host, machine)
      await machine.cleanup
      await dropReady(host, machine)
      const { generation } = machine.record
      const isCleanedUp = generation === ranBefore && machine.uncleanedRun === null
      if (generation > 0 && !isCleanedUp) await cleanUpRun(host, host.paths.run(id, generation))
    }
    await removeMachineState(host, id)
    host.machines.delete(id)
    host.damaged.delete(id)
    host.paths.containers.delete(`${id}-${FIRST_GENERATION}`)
  })
}

/** Kills what still runs of the machine. It must be locked. */
export async function endRun(host: EngineContext, machine: Machine): Promise<void> {
  if (machine.record.state !== 'running') return
  machine.ending = true
  const { container } = host.paths.run(machine.record.spec.id, machine.record.generation)
  const killed = await host.effect('engine.stop.kill', () => killAll(host.cgroups, container))
  if (await endedWithin(host, machine, REPORT_WAIT_MS)) return
  if (!killed) throw new EngineError('timeout', 'The machine did not end in time.')
  // Its monitor hangs and cannot report how it ended.
  await recordKilled(host, machine)
}

async function killRunsOf(host: EngineContext, id: string): Promise<void> {
  const { container: first } = host.paths.run(id, FIRST_GENERATION)
  const containers = listCgroups(host.cgroups).filter((name) => name.startsWith(`${id}-`) || name === first)
  await Promise.all(containers.map((container) => killAll(host.cgroups, container)))
}
