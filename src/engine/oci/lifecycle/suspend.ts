// Ends a run and keeps its memory for the next one: the run is frozen, dumped, and then killed. If any step fails, it
// is ended like a stop.

import type { MachineRef } from '../../engine.ts'
import { endStandbys } from '../exec/standby.ts'
import { freezeProcesses } from './freeze.ts'
import { driverOf, getMachine, type EngineContext, type Machine } from '../context.ts'
import {
  dumpCheckpoint,
  discardCheckpoint,
  hasCheckpoint,
  commitCheckpoint,
} from '../checkpoint/checkpoints.ts'
import { endGracefully } from './stop.ts'

const DUMP_TIMEOUT_MS = 5000
/** Enough for a slow disk. */
const DUMP_TIMEOUT_MS_PER_MB = 10

export function suspendMachine(host: EngineContext, ref: MachineRef, graceMs: number): Promise<boolean> {
  return host.lock(ref.id, async () => {
    const machine = getMachine(host, ref.id)
    const { record } = machine
    if (record.generation !== ref.generation) return false
    if (record.state !== 'running') {
      await machine.cleanup
      return await hasCheckpoint(host, ref)
    }
    machine.ending = true
    // They are not part of the checkpoint.
    machine.losesProcesses = true
    await endStandbys(host, machine)
    const kept = await keepRun(host, machine)
    try {
      // A frozen run whose memory was kept must not run again for an instant.
      await endGracefully(host, machine, kept ? 0 : graceMs)
    } catch (error) {
      await discardCheckpoint(host.paths, ref.id)
      throw error
    }
    return kept
  })
}

async function keepRun(host: EngineContext, machine: Machine): Promise<boolean> {
  const { spec, generation } = machine.record
  const { id, size } = spec
  if (!driverOf(host, machine).memory || !(await freezeProcesses(host, machine))) return false
  const timeoutMs = DUMP_TIMEOUT_MS + size.memoryMb * DUMP_TIMEOUT_MS_PER_MB
  if (!(await dumpCheckpoint(host, machine, id, timeoutMs))) return false
  return await commitCheckpoint(host, machine.record, { id, generation }, 'sums')
}
