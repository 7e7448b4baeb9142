// What a caller does with a background process while it runs: input, and keeping its unit awake (docs/processes.md).

import type { App } from '../../app.ts'
import type { Process, ProcessInput, ProcessInputTaken } from '../../contract/process.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { engineFailure } from './lifecycle/failures.ts'
import { machineRef } from './model/machine.ts'
import { findProcess, getProcess, hasEnded, processFailure, takesNoInput } from './processes.ts'

/** Wakes a sleeping unit. What was written is told even if that is not all. */
export async function writeToProcess(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
  { bytes, end }: ProcessInput,
): Promise<ProcessInputTaken> {
  const process = await getProcess(app, caller, id, processId)
  if (process.state !== 'running') throw hasEnded(processId)
  if (!process.takesInput) throw takesNoInput(processId)
  const taken = await useUnit(app, caller, id, 'no input can be sent to its processes', async (unit) =>
    app.fleet
      .engineOf(unit)
      .writeProcess(machineRef(unit), processId, bytes, end)
      .catch((error: unknown) => {
        throw processFailure(error, processId)
      }),
  )
  return { taken }
}

/** Wakes a sleeping unit, unless it may sleep from now on: `forMs` 0. */
export async function keepProcessAwake(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
  forMs: number,
): Promise<Process> {
  const { process, engine, unit } = await findProcess(app, caller, id, processId)
  if (process.state !== 'running') throw hasEnded(processId)
  const keep = async () =>
    await engine
      .keepProcessAwake(id, processId, new Date(app.clock.now().getTime() + forMs))
      .catch((error: unknown) => {
        throw processFailure(error, processId)
      })
  if (forMs > 0) await useUnit(app, caller, id, 'nothing can keep it awake', keep)
  else
    await keep().catch((error: unknown) => {
      throw engineFailure(error, unit)
    })
  return await getProcess(app, caller, id, processId)
}
