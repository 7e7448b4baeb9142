// Decides when a unit is ready: its healthcheck passed or, without one, its process has started (spec 2.4). Probes
// run one at a time; each is killed after 10 seconds, and all must end within the healthcheck's `timeoutMs` (design
// 5). The first probes follow each other quickly, since most starts take less than one `intervalMs`, and one follows what
// the unit prints (decisions/starts.md).

import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import { EngineError, isEngineError } from '../../../engine/errors.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'
import { machineRef } from '../model/machine.ts'
import { followOutput } from './output.ts'

/** The first pause between two probes; each pause is 1.5 times the one before, up to `intervalMs`. */
const FIRST_PAUSE_MS = 100
const LONGER = 1.5
/** A probe takes processor time of the start that it waits for, in a sandbox much of it: the pause is twice as long. */
const PAUSE_PER_PROBE = 2
/** The pause before a probe because the unit has printed something. */
const PRINTED_PAUSE_MS = 50

/** How much of the output of the last probe and the unit goes into the error. */
const PROBE_CHARACTERS = 300
const LOG_LINES = 10
const LOG_CHARACTERS = 1500

/** `said` contains output of the unit: it is for its team only, and must not be logged. */
export class NotReady extends EngineError {
  // A private field, so that logging the error does not show it.
  readonly #said: string

  constructor(message: string, said: string) {
    super('start_failed', message)
    this.#said = said
  }

  get said(): string {
    return this.#said
  }
}

type Probe = { outcome: 'passed' | 'failed' | 'ended'; said: string }

/** Returns false if its process ended before it was ready. Throws NotReady when the time is over. */
export async function becomesReady(app: App, unit: UnitRecord, atMostMs = Infinity): Promise<boolean> {
  const { healthcheck } = unit.spec
  if (!healthcheck) return true
  const timeoutMs = Math.min(healthcheck.timeoutMs, atMostMs)
  const deadlineMs = app.clock.monotonicMs() + timeoutMs
  const output = followOutput(app, unit)
  let probes = 0
  let last = ''
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= LONGER) {
      const beganMs = app.clock.monotonicMs()
      const leftMs = deadlineMs - beganMs
      if (leftMs <= 0) throw await notReady(app, unit, { timeoutMs, probes, last })
      output.forget()
      const probeMs = Math.min(leftMs, limits.healthcheckProbeMs)
      const { outcome, said } = await probe(app, unit, healthcheck.cmd, probeMs)
      if (outcome !== 'failed') return outcome === 'passed'
      probes += 1
      last = said
      const endedMs = app.clock.monotonicMs()
      const tookMs = endedMs - beganMs
      const longestMs = Math.max(0, Math.min(healthcheck.intervalMs, deadlineMs - endedMs))
      const restMs = Math.min(longestMs, Math.max(pauseMs, PAUSE_PER_PROBE * tookMs))
      await output.next({ afterMs: Math.min(restMs, Math.max(PRINTED_PAUSE_MS, tookMs)), atMostMs: restMs })
    }
  } finally {
    output.close()
  }
}

async function probe(app: App, unit: UnitRecord, argv: string[], timeoutMs: number): Promise<Probe> {
  let output = ''
  try {
    const request = { argv, stdin: null, timeoutMs: Math.ceil(timeoutMs), probe: true }
    const { exitCode, timedOut } = await app.fleet
      .engineOf(unit)
      .exec(machineRef(unit), request, ({ data }) => {
        if (output.length < PROBE_CHARACTERS) output += data.toString('utf8', 0, PROBE_CHARACTERS)
      })
    if (exitCode === 0 && !timedOut) return { outcome: 'passed', said: '' }
    const how = timedOut ? `was killed after ${Math.ceil(timeoutMs)} ms` : `ended with exit code ${exitCode}`
    return { outcome: 'failed', said: [how, quoted(output, PROBE_CHARACTERS)].filter(Boolean).join(': ') }
  } catch (error) {
    if (isEngineError(error, 'not_running') || isEngineError(error, 'run_ended'))
      return { outcome: 'ended', said: '' }
    throw error
  }
}

/**
 * Returns an error with everything needed to find the cause, because the unit is undone except for its stored log.
 */
async function notReady(
  app: App,
  unit: UnitRecord,
  { timeoutMs, probes, last }: { timeoutMs: number; probes: number; last: string },
): Promise<NotReady> {
  const ran = probes === 1 ? 'It ran once and' : `It ran ${probes} times, and the last time`
  const lines = await app.fleet
    .engineOf(unit)
    .logs(unit.id, { after: null, since: null, generation: unit.generation, limit: LOG_LINES })
    .catch(() => [])
  const log = quoted(lines.map(({ text }) => text).join('\n'), LOG_CHARACTERS)
  const said = [
    ...(probes > 0 ? [`${ran} ${last}.`] : []),
    log === '' ? 'The unit printed nothing.' : `The unit printed last: ${log}.`,
  ]
  return new NotReady(`Its healthcheck did not pass within ${timeoutMs} ms.`, said.join(' '))
}

/** Returns the end of the text as one line of visible characters; empty for nothing. */
function quoted(text: string, characters: number): string {
  const visible = text.replaceAll(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, '').trim()
  const kept = visible.replaceAll('\n', ' ⏎ ').slice(-characters)
  return kept === '' ? '' : JSON.stringify(kept.isWellFormed() ? kept : kept.slice(1))
}
