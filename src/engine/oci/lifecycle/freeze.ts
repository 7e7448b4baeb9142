// The first tier of sleep: the kernel's freezer, written directly. A frozen machine uses no CPU and keeps
// its memory and connections; thawing it takes milliseconds in either class (docs: facts of the freezer).

import type { MachineRef } from '../../engine.ts'
import { EngineError } from '../../errors.ts'
import { freezeGroup, isFrozen, thawGroup } from '../kernel/cgroups.ts'
import { recordEndIfExited } from './exits.ts'
import { getMachine, type EngineContext, type Machine } from '../context.ts'
import { hasPendingKill, isMonitorAlive } from '../runtime/monitor.ts'
import { endRun } from './stop.ts'

export function freezeMachine(host: EngineContext, ref: MachineRef): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = await getRun(host, ref)
    if (!(await freezeProcesses(host, machine)))
      throw new EngineError('timeout', 'The machine did not stand still in time.')
  })
}

/** Whether it stands still; where not, it goes on as before. Call it with the machine locked, which runs. */
export async function freezeProcesses(host: EngineContext, machine: Machine): Promise<boolean> {
  if (machine.frozen) return true
  const { spec, generation } = machine.record
  const { container } = host.paths.run(spec.id, generation)
  // Said before it is so: an exec that begins now must not wait in a frozen group.
  machine.frozen = true
  let stands = false
  try {
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
      work().catch((error: unknown) =>
        host.log.warn({ err: error }, 'a command was not killed after the thaw'),
      )
    }
    // What was killed while it was frozen dies now.
    await recordEndIfExited(host, machine)
  })
}

/** Whoever wakes it must not find it running for an instant: it has died in its sleep. */
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
