// The first tier of sleep: the kernel's freezer, written directly. A frozen machine uses no CPU and keeps
// its memory and connections; thawing it takes milliseconds in either class (docs: facts of the freezer).

import type { MachineRef } from '../engine.ts'
import { EngineError } from '../errors.ts'
import { freezeGroup, thawGroup } from './cgroups.ts'
import { settleEnd } from './exits.ts'
import { getMachine, type Host, type Machine } from './host.ts'

export function freezeMachine(host: Host, ref: MachineRef): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = await getRun(host, ref)
    if (machine.frozen) return
    const { container } = host.paths.run(ref.id, ref.generation)
    // Said before it is so: an exec that begins now must not wait in a frozen group.
    machine.frozen = true
    if (await freezeGroup(host.cgroups, container)) return
    machine.frozen = false
    thawGroup(host.cgroups, container)
    throw new EngineError('timeout', 'The machine did not stand still in time.')
  })
}

export function thawMachine(host: Host, ref: MachineRef): Promise<void> {
  return host.lock(ref.id, async () => {
    const machine = await getRun(host, ref)
    thawGroup(host.cgroups, host.paths.run(ref.id, ref.generation).container)
    machine.frozen = false
    for (const work of machine.onThaw.splice(0)) {
      work().catch((error: unknown) => host.log.warn({ error }, 'a command was not killed after the thaw'))
    }
    // What was killed while it was frozen dies now.
    await settleEnd(host, machine)
  })
}

async function getRun(host: Host, ref: MachineRef): Promise<Machine> {
  const machine = getMachine(host, ref.id)
  await settleEnd(host, machine)
  if (machine.record.state !== 'running' || machine.record.generation !== ref.generation) {
    throw new EngineError('not_running', 'The machine is not running.')
  }
  return machine
}
