// Ends a run and keeps its memory for the next one: the run stands still, is dumped, and then killed. If any step fails, it
// is ended like a stop.

import type { MachineRef } from '../../engine.ts'
import { endStandbys } from '../exec/standby.ts'
import { retry } from '../machine/clean-up-run.ts'
import { freezeProcesses } from './freeze.ts'
import { holdMachine, releaseMachine } from './hold.ts'
import { driverOf, getMachine, type EngineContext, type Machine } from '../machine/context.ts'
import {
  dumpCheckpoint,
  discardCheckpoint,
  hasCheckpoint,
  commitCheckpoint,
} from '../checkpoint/checkpoints.ts'
import type { Memory, Standing } from '../runtime/driver.ts'
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
  const { memory } = driverOf(host, machine)
  if (memory === null) return false
  const timeoutMs = DUMP_TIMEOUT_MS + size.memoryMb * DUMP_TIMEOUT_MS_PER_MB
  const save = async () =>
    (await dumpCheckpoint(host, machine, id, timeoutMs)) &&
    (await commitCheckpoint(host, machine.record, { id, generation }))
  if (memory.standing === null) return (await freezeProcesses(host, machine)) && (await save())
  return await keepHeld(host, machine, memory, memory.standing, save)
}

/** Of a machine that saves itself. It goes on if nothing was kept, so that it can end by itself. */
async function keepHeld(
  host: EngineContext,
  machine: Machine,
  memory: Memory,
  standing: Standing,
  save: () => Promise<boolean>,
): Promise<boolean> {
  const { spec, generation } = machine.record
  const { container } = host.paths.run(spec.id, generation)
  let kept = false
  try {
    // A restore would make orphans of them. Those of one that is frozen are ended then, since nothing may run in it now.
    if (!machine.frozen) await memory.endCommands(container, machine.destroySignal.signal)
    // As of a frozen one: what comes now is refused.
    machine.frozen = true
    await host.effect('engine.freeze', () => holdMachine(host, machine, standing))
    kept = await save()
  } catch (error) {
    host.log.warn({ err: error, machine: spec.id }, 'memory is not kept')
  }
  if (kept || machine.record.state !== 'running') return kept
  machine.frozen = false
  await retry(host, spec.id, () => releaseMachine(host, machine, standing))
  return false
}
