// What a machine may reach: stored in the machine's record, so that the next engine knows it without the server.

import type { MachineEgress } from '../egress.ts'
import type { MachineRef } from '../engine.ts'
import { type EngineContext, getMachine } from './machine/context.ts'
import { saveRecord } from './records/record.ts'

export function restrictMachine(
  host: EngineContext,
  ref: MachineRef,
  egress: MachineEgress | null,
): Promise<void> {
  return host.lock(ref.id, async () => {
    const { record } = getMachine(host, ref.id)
    if (ref.generation < record.generation) return
    const changed = { ...record, egress }
    await saveRecord(host.paths, changed)
    Object.assign(record, { egress })
    await host.network.restrict(ref.id, egress)
  })
}
