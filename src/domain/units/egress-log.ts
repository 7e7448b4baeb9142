// What a unit reached and was refused, in the last seven days, also of one that is destroyed. Reading it wakes nothing.

import type { App } from '../../app.ts'
import type {
  EgressLogEvent,
  EgressLogLine,
  EgressLogPage,
  EgressLogQuery,
} from '../../contract/egress-log.ts'
import { validation } from '../../contract/errors.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import { entryForLine, reasonOfLine } from '../../lib/egress/seen-text.ts'
import { type EgressLogFilter, listEgressLog, type StoredLine } from '../../store/egress-log.ts'
import type { Caller } from '../credentials/caller.ts'
import { getRecord } from './get.ts'

const LOOK_EVERY_MS = SECOND

/** Returns the newest lines, or with `since` those after it; oldest first. */
export async function readEgressLog(
  app: App,
  caller: Caller,
  id: string,
  query: EgressLogQuery,
): Promise<EgressLogPage> {
  const { id: unitId } = await getRecord(app, caller, id)
  const lines = await listEgressLog(app.db, filterOf(unitId, query))
  const last = lines.at(-1)
  return { lines: lines.map(showLine), next: last ? `${last.changed}` : (query.since ?? null) }
}

/** Yields what readEgressLog returns, line by line, and then what is new or has grown, until the unit is destroyed. */
export async function* followEgressLog(
  app: App,
  caller: Caller,
  id: string,
  query: EgressLogQuery,
  signal: AbortSignal,
): AsyncGenerator<EgressLogEvent> {
  const { id: unitId } = await getRecord(app, caller, id)
  let filter = filterOf(unitId, query)
  while (!signal.aborted) {
    const { state } = await getRecord(app, caller, unitId)
    const lines = await listEgressLog(app.db, filter)
    for (const line of lines) yield { kind: 'line', cursor: `${line.changed}`, line: showLine(line) }
    // Where there is no line yet, every line is new.
    const none = filter.since === null ? 0 : null
    filter = { ...filter, after: lines.at(-1)?.changed ?? filter.after ?? none }
    if (lines.length > 0) continue
    if (state === 'destroyed') return yield { kind: 'end', reason: 'destroyed' }
    await app.clock.sleep(LOOK_EVERY_MS, signal).catch(() => {})
  }
}

function filterOf(unitId: string, { since, decision, limit }: EgressLogQuery): EgressLogFilter {
  const from = since === undefined ? { after: null, since: null } : parseSince(since)
  return { unitId, decision: decision ?? null, limit, ...from }
}

function parseSince(text: string): Pick<EgressLogFilter, 'after' | 'since'> {
  if (/^\d{1,15}$/.test(text)) return { after: Number(text), since: null }
  const time = new Date(text)
  if (/^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?$/.test(text) && !Number.isNaN(time.getTime()))
    return { after: null, since: new Date(Math.floor(time.getTime() / MINUTE) * MINUTE) }
  const message = 'must be the `next` of an earlier answer, or an ISO time such as 2026-01-31T12:00:00Z'
  throw validation([{ path: 'since', message }])
}

function showLine(line: StoredLine): EgressLogLine {
  const { minute, host, address, port, protocol, decision, rule, secret, bytesIn, bytesOut, count } = line
  return {
    at: new Date(minute).toISOString(),
    host,
    address,
    port,
    protocol,
    decision,
    rule,
    reason: reasonOfLine(line),
    entry: entryForLine(line),
    secret,
    bytesIn,
    bytesOut,
    count,
  }
}
