// An interactive command of a unit, which wakes for it. Bytes in either direction are a use of the unit; an open
// terminal alone is not: the unit falls asleep under it, and the next input wakes it. When the unit's run ends, the
// terminal ends too.

import type { App } from '../../app.ts'
import { limits } from '../../contract/limits.ts'
import type { ExecExit, ExecOutput, TerminalRequest } from '../../engine/exec.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { TerminalInput } from '../../engine/terminal.ts'
import { SECOND } from '../../lib/clock.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { recordUse } from './activity/record-use.ts'
import { useUnit } from './activity/use-unit.ts'
import { endedMeanwhile } from './exec.ts'
import { getRecord } from './get.ts'
import { engineFailure } from './lifecycle/failures.ts'
import { machineRef } from './model/machine.ts'
import { unknownUser } from './unknown-user.ts'

const REFUSED = 'no command can run in it'
/** The shortest idle window is a minute. A unit whose use was recorded this recently is not put to sleep for idling. */
const RECORD_EVERY_MS = 10 * SECOND
/** The command where the caller names none. */
const SHELL = ['sh', '-c', 'command -v bash >/dev/null 2>&1 && exec bash; exec sh']

export type { TerminalInput }
export type TerminalOptions = Pick<TerminalRequest, 'env' | 'cwd' | 'size' | 'user'> & {
  argv: string[] | null
}

export type TerminalLine = {
  input: AsyncIterable<TerminalInput>
  /** It is awaited, so a slow reader slows the command down. */
  onOutput: (output: ExecOutput) => Promise<void>
  /** Aborting it kills the command. */
  signal: AbortSignal
  /** Is told the pid that the command has in the unit, before its first output. */
  onBegun?: (pid: number) => void
}

/** Wakes the unit, and resolves when the command has ended. Throws where none can run in it. */
export async function runTerminal(
  app: App,
  caller: Caller,
  id: string,
  { argv, ...options }: TerminalOptions,
  { input, onOutput, signal, onBegun }: TerminalLine,
): Promise<ExecExit> {
  const unit = await useUnit(app, caller, id, REFUSED, async (record) => record)
  const use = createUse(app, caller, unit)
  const request = { ...options, argv: argv ?? SHELL, timeoutMs: limits.terminalMs }
  const failed = new AbortController()
  const heard = async (output: ExecOutput) => {
    use.printed()
    await onOutput(output)
  }
  try {
    return await app.fleet
      .engineOf(unit)
      .terminal(
        machineRef(unit),
        request,
        awake(input, use, failed),
        heard,
        AbortSignal.any([signal, failed.signal]),
        onBegun,
      )
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (failed.signal.aborted) throw failed.signal.reason
    const isOver = isEngineError(error, 'run_ended') || isEngineError(error, 'not_running')
    throw isOver
      ? endedMeanwhile(await getRecord(app, caller, unit.id), null)
      : engineFailure(unknownUser(error), unit)
  } finally {
    use.end()
  }
}

/** Passes each input on once the unit is awake. A unit that cannot be woken ends the terminal with the reason. */
async function* awake(
  input: AsyncIterable<TerminalInput>,
  use: Use,
  failed: AbortController,
): AsyncGenerator<TerminalInput> {
  for await (const each of input) {
    try {
      if (each.kind !== 'resize') await use.typed()
    } catch (error) {
      failed.abort(error)
      return
    }
    yield each
  }
}

type Use = {
  /** Resolves once the unit is awake. Throws if it cannot be. */
  typed: () => Promise<void>
  printed: () => void
  end: () => void
}

function createUse(app: App, caller: Caller, unit: UnitRecord): Use {
  // It has just been woken, which is a use.
  let recordedMs = app.clock.monotonicMs()
  let isFreezing = false
  const onFreezing = (id: string) => {
    if (id === unit.id) isFreezing = true
  }
  app.activity.events.on('freezing', onFreezing)
  const isRecent = () => app.clock.monotonicMs() - recordedMs < RECORD_EVERY_MS
  return {
    typed: async () => {
      if (!isFreezing && isRecent()) return
      recordedMs = app.clock.monotonicMs()
      const wasFreezing = isFreezing
      isFreezing = false
      if (!wasFreezing && (await recordUse(app, unit))) return
      await useUnit(app, caller, unit.id, REFUSED, async () => {})
    },
    printed: () => {
      if (isFreezing || isRecent()) return
      recordedMs = app.clock.monotonicMs()
      recordUse(app, unit).catch((error: unknown) =>
        app.log.warn({ err: error }, 'use could not be recorded'),
      )
    },
    end: () => void app.activity.events.off('freezing', onFreezing),
  }
}
