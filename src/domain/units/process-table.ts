// What runs in a unit, as the unit itself sees it: also what no call started. Looking is a use of the unit, since only a
// unit that is awake can say it.

import type { App } from '../../app.ts'
import { notFound } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { ProcessSignal, ProcessTable } from '../../contract/process.ts'
import { isEngineError } from '../../engine/errors.ts'
import { maskCommand } from '../audit/mask.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { machineRef } from './model/machine.ts'

export async function readProcessTable(app: App, caller: Caller, id: string): Promise<ProcessTable> {
  return await useUnit(app, caller, id, 'its processes cannot be listed', async (unit) => {
    const engine = app.fleet.engineOf(unit)
    const { tasks, truncated } = await engine.tasks(machineRef(unit))
    const started = (await engine.processes(unit.id)).filter(({ state }) => state === 'running')
    const processes = tasks.map(({ pid, parentPid, groupId, uid, owner, state, argv }) => {
      const own = started.find((process) => process.pid === groupId)
      const cmd = shown(maskCommand(argv))
      return {
        pid,
        parentPid,
        uid,
        user: owner,
        state,
        cmd,
        processId: own?.id ?? null,
        tag: own?.tag ?? null,
      }
    })
    return { processes, truncated }
  })
}

/** As the kernel bounds them. */
const PID = /^[1-9][0-9]{0,6}$/

/** One process alone, also if no call started it. */
export async function signalPid(
  app: App,
  caller: Caller,
  id: string,
  asked: string,
  signal: NonNullable<ProcessSignal['signal']>,
): Promise<{ pid: number }> {
  const pid = Number(asked)
  if (!PID.test(asked)) throw notFound('process', asked)
  return await useUnit(app, caller, id, 'no signal can be sent to its processes', async (unit) => {
    await app.fleet
      .engineOf(unit)
      .signalTask(machineRef(unit), pid, signal)
      .catch((error: unknown) => {
        throw isEngineError(error, 'unknown_process') ? notFound('process', asked) : error
      })
    return { pid }
  })
}

/** Whatever the unit says stays short, and is text. */
function shown(cmd: string[]): string[] {
  let left: number = limits.processShownLength
  return cmd.flatMap((word) => {
    const kept = word.toWellFormed().slice(0, left)
    left -= kept.length
    return left <= 0 && kept === '' ? [] : [kept]
  })
}
