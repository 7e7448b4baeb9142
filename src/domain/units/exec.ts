// Runs a command in a unit (spec 4.2), without a shell. Output beyond a limit is dropped, so a command that prints
// without end does not exhaust memory and is not killed for it.

import { StringDecoder } from 'node:string_decoder'
import type { App } from '../../app.ts'
import type { AppError } from '../../contract/errors.ts'
import type { Exec, ExecResult } from '../../contract/exec.ts'
import { limits } from '../../contract/limits.ts'
import type { ExecOutput } from '../../engine/exec.ts'
import type { Caller } from '../credentials/caller.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { notPossible } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { useUnit } from './activity/use-unit.ts'
import { machineRef } from './model/machine.ts'
import { unknownUser } from './unknown-user.ts'

type Output = Pick<ExecResult, 'stdout' | 'stderr' | 'truncated' | 'encoding'>

export type ExecOptions = {
  /**
   * Gets the output while it is printed; the result then has empty streams and is never `truncated`. It is awaited,
   * so a slow reader slows the command down.
   */
  onOutput?: (output: ExecOutput) => void | Promise<void>
  /** Aborting it kills the command. */
  signal?: AbortSignal
  /** Nothing happens before it resolves, but for a look at the unit. */
  written?: Promise<void>
  /** The command is a program of ours that answers one request after another (engine/exec.ts). */
  worker?: boolean
}

export async function execInUnit(
  app: App,
  caller: Caller,
  id: string,
  request: Exec,
  { onOutput, signal, written, worker }: ExecOptions = {},
): Promise<ExecResult> {
  const collected = { stdout: new CutOutput(), stderr: new CutOutput() }
  const receive = onOutput ?? (({ stream, data }: ExecOutput) => collected[stream].add(data))
  const engineRequest = {
    argv: request.cmd,
    env: request.env ?? {},
    cwd: request.cwd ?? null,
    stdin: request.stdin === undefined ? null : Buffer.from(request.stdin),
    timeoutMs: request.timeoutMs,
    ...(request.user !== undefined && { user: request.user }),
    ...(worker && { worker }),
  }
  const soFar = () => ({
    stdout: collected.stdout.text(request.encoding),
    stderr: collected.stderr.text(request.encoding),
    truncated: collected.stdout.cut || collected.stderr.cut,
    ...(request.encoding && { encoding: request.encoding }),
  })
  const run = async (unit: UnitRecord) => {
    try {
      return await app.fleet.engineOf(unit).exec(machineRef(unit), engineRequest, receive, signal)
    } catch (error) {
      if (!isEngineError(error, 'run_ended')) throw unknownUser(error)
      throw endedMeanwhile(await getRecord(app, caller, id), onOutput ? null : soFar())
    }
  }
  const exit = await useUnit(app, caller, id, 'no command can run in it', run, written)
  return { ...exit, ...soFar() }
}

/** A streaming caller already has the output. */
export function endedMeanwhile(unit: UnitRecord, output: Output | null): AppError {
  const message = `The unit ${whatHappened(unit)} while the command ran, so the command was killed.`
  return notPossible(unit, message, output === null ? {} : { output })
}

function whatHappened({ state }: UnitRecord): string {
  if (state === 'destroying' || state === 'destroyed') return 'was destroyed'
  if (state === 'sleeping') return 'was put to sleep'
  if (state === 'starting' || state === 'running') return 'was started again'
  return 'was stopped'
}

/** The output of one stream up to the limit, as text. */
class CutOutput {
  #chunks: Buffer[] = []
  #bytes = 0
  cut = false

  add(data: Buffer): void {
    const room = limits.execOutputBytes - this.#bytes
    if (data.length > room) this.cut = true
    if (room <= 0) return
    this.#chunks.push(data.length > room ? data.subarray(0, room) : data)
    this.#bytes += Math.min(data.length, room)
  }

  /** Returns the text as UTF-8; invalid bytes become U+FFFD. A character that the limit cuts is left out. */
  text(encoding?: 'base64'): string {
    const bytes = Buffer.concat(this.#chunks)
    if (encoding) return bytes.toString(encoding)
    return this.cut ? new StringDecoder('utf8').write(bytes) : bytes.toString('utf8')
  }
}
