// Ends a run and keeps what it has in memory for the next one: it stands still, is written down, and only then
// killed. Whatever fails on the way, the run is ended as a stop ends it.

import type { MachineRef } from '../../engine.ts'
import { freezeProcesses } from './freeze.ts'
import { getMachine, type EngineContext, type Machine } from '../context.ts'
import { dumpCheckpoint, discardCheckpoint, hasCheckpoint, commitCheckpoint } from '../checkpoint/images.ts'
import { endGracefully } from './stop.ts'

const DUMP_TIMEOUT_MS = 5000
/** As a slow disk needs them. */
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
    // They are no children of what is kept.
    machine.losesProcesses = true
    const kept = await keepRun(host, machine)
    try {
      // What stands still and is kept must not go on for an instant.
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
  const { id, isolation, size } = spec
  if (!host.runtimes.get(isolation)?.criu || !(await freezeProcesses(host, machine))) return false
  const timeoutMs = DUMP_TIMEOUT_MS + size.memoryMb * DUMP_TIMEOUT_MS_PER_MB
  if (!(await dumpCheckpoint(host, machine, id, timeoutMs))) return false
  return await commitCheckpoint(host, machine.record, { id, generation })
}
