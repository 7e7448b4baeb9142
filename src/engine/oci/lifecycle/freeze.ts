// The first tier of sleep: the kernel's freezer, written to directly. A frozen machine uses no CPU and keeps its
// memory and connections; thawing it takes milliseconds in either class.

import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { freezeGroup, isFrozen, thawGroup } from '../kernel/cgroups.ts'
import { recordEndIfExited } from './exits.ts'
import { waitForLaunches } from '../runtime/launching.ts'
import { getMachine, type EngineContext, type Machine } from '../machine/context.ts'
import { hasPendingKill, isMonitorAlive } from '../runtime/monitor.ts'
import { endRun } from './stop.ts'

export function freezeMachine(host: EngineContext, ref: MachineRef): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = await getRun(host, ref)
    if (!(await freezeProcesses(host, machine)))
      throw new EngineError('timeout', 'The machine could not be frozen in time.')
  })
}

/** Returns whether it is frozen; otherwise it keeps running. The machine must be locked and running. */
export async function freezeProcesses(host: EngineContext, machine: Machine): Promise<boolean> {
  if (machine.frozen) return true
  const { spec, generation } = machine.record
  const { container } = host.paths.run(spec.id, generation)
  // Set first: an exec that starts now must not wait in a frozen group.
  machine.frozen = true
  let stands = false
  try {
    await waitForLaunches(host.clock, machine.launching)
    stands = await host.effect('engine.freeze', () => freezeGroup(host.cgroups, container))
  } finally {
    if (!stands) {
      machine.frozen = false
      thawGroup(host.cgroups, container)
    }
  }
  return stands
}

export function thawMachine(host: EngineContext, ref: MachineRef): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = await getRun(host, ref)
    await endIfKilled(host, machine)
    const { container } = host.paths.run(ref.id, ref.generation)
    try {
      await host.effect('engine.thaw', async () => thawGroup(host.cgroups, container))
    } catch (error) {
      machine.frozen = isFrozen(host.cgroups, container)
      throw error
    }
    machine.frozen = false
    for (const work of machine.onThaw.splice(0)) {
      work().catch((error: unknown) => host.log.warn({ err: error }, 'command was not killed after the thaw'))
    }
    // Processes that were killed while frozen die now.
    await recordEndIfExited(host, machine)
  })
}

/** A wake must not find a machine running for an instant that was killed while frozen. */
async function endIfKilled(host: EngineContext, machine: Machine): Promise<void> {
  const { monitor } = machine.record
  if (!machine.frozen || (monitor && isMonitorAlive(monitor) && !hasPendingKill(monitor))) return
  await endRun(host, machine)
  throw new EngineError('not_running', 'The machine was killed while it was frozen.')
}

async function getRun(host: EngineContext, ref: MachineRef): Promise<Machine> {
  const machine = getMachine(host, ref.id)
  await recordEndIfExited(host, machine)
  if (machine.record.state !== 'running' || machine.record.generation !== ref.generation) {
    throw new EngineError('not_running', 'The machine is not running.')
  }
  return machine
}
