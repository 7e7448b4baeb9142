// Running a command in a unit (spec 4.2). Without a shell, with its output cut at a bound: a command that
// prints without end costs neither memory here nor its own life.

import { StringDecoder } from 'node:string_decoder'
import type { App } from '../../app.ts'
import type { AppError } from '../../contract/errors.ts'
import type { Exec, ExecResult } from '../../contract/exec.ts'
import { limits } from '../../contract/limits.ts'
import type { ExecOutput } from '../../engine/engine.ts'
import type { Caller } from '../credentials/caller.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { notPossible } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { useUnit } from './activity/use-unit.ts'
import { machineRef } from './model/machine.ts'

type Output = Pick<ExecResult, 'stdout' | 'stderr' | 'truncated'>

export type ExecOptions = {
  /**
   * Gets output as it comes instead of the answer, which then has empty streams and is never `truncated`.
   * It is waited for: a slow reader holds the command back.
   */
  onOutput?: (output: ExecOutput) => void | Promise<void>
  /** Aborting kills the command. */
  signal?: AbortSignal
}

export async function execInUnit(
  app: App,
  caller: Caller,
  id: string,
  request: Exec,
  { onOutput, signal }: ExecOptions = {},
): Promise<ExecResult> {
  const collected = { stdout: new CutOutput(), stderr: new CutOutput() }
  const receive = onOutput ?? (({ stream, data }: ExecOutput) => collected[stream].add(data))
  const engineRequest = {
    argv: request.cmd,
    env: request.env ?? {},
    cwd: request.cwd ?? null,
    stdin: request.stdin === undefined ? null : Buffer.from(request.stdin),
    timeoutMs: request.timeoutMs,
  }
  const soFar = () => ({
    stdout: collected.stdout.text(),
    stderr: collected.stderr.text(),
    truncated: collected.stdout.cut || collected.stderr.cut,
  })
  const exit = await useUnit(app, caller, id, 'no command can run in it', async (unit) => {
    try {
      return await app.engine.exec(machineRef(unit), engineRequest, receive, signal)
    } catch (error) {
      if (!isEngineError(error, 'run_ended')) throw error
      throw endedMeanwhile(await getRecord(app, caller, id), onOutput ? null : soFar())
    }
  })
  return { ...exit, ...soFar() }
}

/** Whoever streams has had the output already. */
function endedMeanwhile(unit: UnitRecord, output: Output | null): AppError {
  const message = `The unit ${whatHappened(unit)} while the command ran, which was killed with it.`
  return notPossible(unit, message, output === null ? {} : { output })
}

function whatHappened({ state }: UnitRecord): string {
  if (state === 'destroying' || state === 'destroyed') return 'was destroyed'
  if (state === 'sleeping') return 'was put to sleep'
  if (state === 'starting' || state === 'running') return 'was started anew'
  return 'was stopped'
}

/** One stream's output up to the bound, as text. */
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

  /** As UTF-8; bytes that are not become U+FFFD. A character cut in two at the bound is left out. */
  text(): string {
    const bytes = Buffer.concat(this.#chunks)
    return this.cut ? new StringDecoder('utf8').write(bytes) : bytes.toString('utf8')
  }
}
