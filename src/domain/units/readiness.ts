// When a unit is ready: its healthcheck passed or, without one, its process has started (spec 2.4). One
// probe at a time, each killed after 10 seconds, all within the healthcheck's `timeoutMs` (design 5). The first
// follow each other closely, since most starts take less than one `intervalMs` (docs/decisions/0039).

import type { App } from '../../app.ts'
import { limits } from '../../contract/limits.ts'
import { EngineError, isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { machineRef } from './machine.ts'

/** The first pause between two probes; each is half as long again as the one before, up to `intervalMs`. */
const FIRST_PAUSE_MS = 100
const LONGER = 1.5

/** False: its process ended before it was ready. Throws EngineError `start_failed` when time is up. */
export async function becomesReady(app: App, unit: UnitRecord, atMostMs = Infinity): Promise<boolean> {
  const { healthcheck } = unit.spec
  if (!healthcheck) return true
  const timeoutMs = Math.min(healthcheck.timeoutMs, atMostMs)
  const deadlineMs = app.clock.monotonicMs() + timeoutMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= LONGER) {
    const leftMs = deadlineMs - app.clock.monotonicMs()
    if (leftMs <= 0) throw notReady(timeoutMs)
    const outcome = await probe(app, unit, healthcheck.cmd, Math.min(leftMs, limits.healthcheckProbeMs))
    if (outcome !== 'failed') return outcome === 'passed'
    const restMs = deadlineMs - app.clock.monotonicMs()
    await app.clock.sleep(Math.max(0, Math.min(pauseMs, healthcheck.intervalMs, restMs)))
  }
}

async function probe(
  app: App,
  unit: UnitRecord,
  argv: string[],
  timeoutMs: number,
): Promise<'passed' | 'failed' | 'ended'> {
  try {
    const request = { argv, stdin: null, timeoutMs: Math.ceil(timeoutMs) }
    const { exitCode, timedOut } = await app.engine.exec(machineRef(unit), request, () => {})
    return exitCode === 0 && !timedOut ? 'passed' : 'failed'
  } catch (error) {
    if (isEngineError(error, 'not_running') || isEngineError(error, 'run_ended')) return 'ended'
    throw error
  }
}

function notReady(timeoutMs: number): EngineError {
  return new EngineError('start_failed', `Its healthcheck did not pass within ${timeoutMs} ms.`)
}
