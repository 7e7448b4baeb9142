// Background processes of a unit (docs/processes.md). Starting or signalling one is a use of the unit; reading them
// is not, and wakes nothing.

import { z } from 'zod'
import type { App } from '../../app.ts'
import { conflict, invalidState, notFound } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { Process, ProcessList, ProcessSignal, ProcessStart } from '../../contract/process.ts'
import type { MachineProcess, ProcessOutput } from '../../engine/process.ts'
import type { Engine } from '../../engine/engine.ts'
import { isEngineError } from '../../engine/errors.ts'
import { newId } from '../../lib/ids.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { maskCommand } from '../audit/mask.ts'
import type { Caller } from '../credentials/caller.ts'
import type { Once } from '../idempotency/once.ts'
import { inLiveTeamTransaction } from '../transactions/transactions.ts'
import { awakeUntilOf } from './activity/kept-awake.ts'
import { useUnit } from './activity/use-unit.ts'
import { getRecord } from './get.ts'
import { engineFailure, notPossibleNow } from './lifecycle/failures.ts'
import { machineRef } from './model/machine.ts'
import { unknownUser } from './unknown-user.ts'

const keptOfStartSchema = z.object({ processId: z.string() })
type KeptOfStart = z.infer<typeof keptOfStartSchema>

export async function startProcess(
  app: App,
  caller: Caller,
  id: string,
  body: ProcessStart,
  once: Once | null,
): Promise<Process> {
  await getRecord(app, caller, id)
  const kept: KeptOfStart = { processId: newId('process') }
  if (once)
    await inLiveTeamTransaction(app, { teamId: caller.teamId, once }, async (db) => await once.keep(db, kept))
  return await beginProcess(app, caller, id, kept, body)
}

/** For a call whose answer was lost: the engine starts one process per id. */
export async function resumeStart(
  app: App,
  caller: Caller,
  id: string,
  body: ProcessStart,
  kept: unknown,
): Promise<Process> {
  return await beginProcess(app, caller, id, keptOfStartSchema.parse(kept), body)
}

async function beginProcess(
  app: App,
  caller: Caller,
  id: string,
  { processId }: KeptOfStart,
  { cmd, cwd, env, stdin, takesInput, keepsAwake, tag, user }: ProcessStart,
): Promise<Process> {
  const request = {
    // The same id when it is tried again on a unit that fell asleep, so that only one process starts.
    id: processId,
    argv: cmd,
    shown: maskCommand(cmd),
    env,
    cwd: cwd ?? null,
    stdin: stdin === undefined ? null : Buffer.from(stdin),
    keepsAwake,
    ...(takesInput && { takesInput }),
    ...(tag !== undefined && { tag }),
    ...(user !== undefined && { user }),
  }
  return await useUnit(app, caller, id, 'no process can start in it', async (unit) =>
    showProcess(
      unit.id,
      await app.fleet
        .engineOf(unit)
        .startProcess(machineRef(unit), request)
        .catch((error: unknown) => {
          throw processFailure(error, processId)
        }),
    ),
  )
}

export async function listProcesses(
  app: App,
  caller: Caller,
  id: string,
  { tag }: { tag?: string | undefined } = {},
): Promise<ProcessList> {
  const unit = await getUnitWithProcesses(app, caller, id)
  const found = (await processesOf(app, unit)).filter((process) => tag === undefined || process.tag === tag)
  return { processes: found.map((process) => showProcess(unit.id, process)) }
}

export async function getProcess(app: App, caller: Caller, id: string, processId: string): Promise<Process> {
  return (await findProcess(app, caller, id, processId)).process
}

/** With its unit, and the engine of that. */
export async function findProcess(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
): Promise<{ process: Process; engine: Engine; unit: UnitRecord }> {
  const unit = await getUnitWithProcesses(app, caller, id)
  const found = (await processesOf(app, unit)).find((process) => process.id === processId)
  if (!found) throw notFound('process', processId)
  return { process: showProcess(unit.id, found), engine: app.fleet.engineOf(unit), unit }
}

/** Returns the process as it was before its output was read, so an ended process has all its output. */
export async function readProcess(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
  after: number,
  maxBytes: number,
): Promise<{ process: Process; pieces: ProcessOutput[] }> {
  const { process, engine } = await findProcess(app, caller, id, processId)
  try {
    return { process, pieces: await engine.processOutput(id, processId, after, maxBytes) }
  } catch (error) {
    throw await readFailure(app, caller, id, processId, error)
  }
}

export type Follow = {
  after: number
  /** How long to wait for new output; null: until the process has ended. */
  forMs: number | null
  signal: AbortSignal
}

/**
 * Yields the output after an offset until the process has ended, the signal aborts, or `forMs` have passed. Output that existed at the
 * time of the call is yielded in any case.
 */
export async function* followProcess(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
  { after, forMs, signal }: Follow,
): AsyncGenerator<ProcessOutput> {
  const { process, engine } = await findProcess(app, caller, id, processId)
  const { output } = process
  let told = after
  let isTimeOver = false
  const enough = new AbortController()
  const endIfTold = () => {
    if (isTimeOver && told >= output.to) enough.abort()
  }
  const done = new AbortController()
  const timer = whenOver(app, forMs, done.signal, () => {
    isTimeOver = true
    endIfTold()
  })
  try {
    const either = AbortSignal.any([signal, enough.signal])
    for await (const piece of engine.followProcess(id, processId, after, either)) {
      yield piece
      told = piece.end
      endIfTold()
    }
  } catch (error) {
    throw await readFailure(app, caller, id, processId, error)
  } finally {
    done.abort()
    await timer
  }
}

async function whenOver(
  { clock }: App,
  forMs: number | null,
  done: AbortSignal,
  call: () => void,
): Promise<void> {
  if (forMs === null) return
  try {
    await clock.sleep(forMs, done)
  } catch {
    return
  }
  call()
}

export async function signalProcess(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
  signal: ProcessSignal['signal'],
): Promise<Process> {
  const process = await getProcess(app, caller, id, processId)
  if (process.state !== 'running') throw hasEnded(processId)
  await useUnit(app, caller, id, 'no signal can be sent to its processes', async (unit) => {
    await app.fleet
      .engineOf(unit)
      .signalProcess(machineRef(unit), processId, signal)
      .catch((error: unknown) => {
        throw processFailure(error, processId)
      })
  })
  return await getProcess(app, caller, id, processId)
}

/** Returns the process as it was. Wakes a sleeping unit to kill a process in it. */
export async function deleteProcess(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
): Promise<Process> {
  const { process, engine } = await findProcess(app, caller, id, processId)
  const forget = async () => await engine.forgetProcess(id, processId)
  if (process.state === 'running') await useUnit(app, caller, id, 'its processes cannot be ended', forget)
  else
    await forget().catch(async (error: unknown) => {
      throw await readFailure(app, caller, id, processId, error)
    })
  return process
}

async function getUnitWithProcesses(app: App, caller: Caller, id: string): Promise<UnitRecord> {
  const unit = await getRecord(app, caller, id)
  if (unit.state === 'destroyed') throw notPossibleNow(unit, 'its processes are gone')
  return unit
}

async function processesOf(app: App, unit: UnitRecord): Promise<MachineProcess[]> {
  try {
    return await app.fleet.engineOf(unit).processes(unit.id)
  } catch (error) {
    // The machine does not exist yet, or was undone after a failure.
    if (isEngineError(error, 'unknown_machine')) return []
    throw engineFailure(error, unit)
  }
}

/** Translates errors about the process; use-unit.ts handles those about its unit. */
export function processFailure(error: unknown, processId: string): unknown {
  if (isEngineError(error, 'unknown_process')) return notFound('process', processId)
  if (isEngineError(error, 'process_ended')) return hasEnded(processId)
  if (isEngineError(error, 'input_ended')) return takesNoInput(processId)
  if (isEngineError(error, 'unknown_user')) return unknownUser(error)
  if (isEngineError(error, 'process_limit')) {
    const { processes, teamProcesses } = limits
    const most = `At most ${processes} processes of a unit and ${teamProcesses} of a team run at once`
    return conflict(`${most}; end one of them, or run the command by POST /v1/units/{id}/exec.`, {
      processes,
      teamProcesses,
    })
  }
  if (isEngineError(error, 'process_refused'))
    return conflict(
      'The unit could not start another process: it has as many as its size allows. End some of them.',
    )
  return error
}

async function readFailure(
  app: App,
  caller: Caller,
  id: string,
  processId: string,
  error: unknown,
): Promise<unknown> {
  if (isEngineError(error, 'unknown_machine')) return notFound('process', processId)
  const failure = processFailure(error, processId)
  return isEngineError(failure) ? engineFailure(failure, await getRecord(app, caller, id)) : failure
}

export function hasEnded(processId: string) {
  return invalidState('The process has ended, so no signal and no input can be sent to it.', { processId })
}

export function takesNoInput(processId: string) {
  return invalidState(
    'The process takes no input: it was started without `takesInput`, its input was ended, or it has closed it.',
    { processId },
  )
}

function showProcess(unitId: string, machineProcess: MachineProcess): Process {
  const { shown, startedAt, endedAt, ...process } = machineProcess
  return {
    ...process,
    awakeUntil: awakeUntilOf(machineProcess)?.toISOString() ?? null,
    unitId,
    cmd: shown,
    startedAt: startedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  }
}
