// The output of a unit's process (spec 4.2). Reading it is not a use of the unit and wakes nothing (design 4). For a
// unit that could not be created it is the stored log (model/kept-log.ts).

import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import type { LogEvent, LogLine, LogPage, LogQuery } from '../../contract/logs.ts'
import type { LogLine as EngineLine } from '../../engine/engine.ts'
import { isEngineError } from '../../engine/errors.ts'
import { logLimitReached } from '../../lib/limit-reached.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { engineFailure, notPossibleNow } from './lifecycle/failures.ts'
import { getRecord } from './get.ts'
import { queryKeptLog } from './model/kept-log.ts'

/** Returns the newest lines, or with `since` the lines after it; oldest first. */
export async function readLogs(app: App, caller: Caller, id: string, query: LogQuery): Promise<LogPage> {
  const unit = await getLoggedUnit(app, caller, id)
  const lines = await storedLines(app, unit, query)
  return { lines: lines.map(showLine), next: lines.at(-1)?.cursor ?? query.since ?? null }
}

/**
 * Yields what readLogs returns, line by line, and then every new line, until the unit's run ends or the signal
 * aborts. For a unit that does not run it ends at once.
 */
export async function* followLogs(
  app: App,
  caller: Caller,
  id: string,
  query: LogQuery,
  signal: AbortSignal,
): AsyncGenerator<LogEvent> {
  const unit = await getLoggedUnit(app, caller, id)
  const time = query.since === undefined ? null : parseTime(query.since)
  let after = query.since !== undefined && time === null ? query.since : null
  // If there are no lines from that time yet, follows only new lines instead of all.
  if (time) after = (await storedLines(app, unit, { limit: 1 })).at(-1)?.cursor ?? null
  for (const line of await storedLines(app, unit, query)) {
    after = line.cursor
    yield toEvent(line)
  }
  try {
    const coming = unit.state === 'error' ? [] : app.fleet.engineOf(unit).followLogs(unit.id, after, signal)
    for await (const line of coming) {
      if (!time || line.at >= time) yield toEvent(line)
    }
  } catch (error) {
    if (!isEngineError(error, 'unknown_machine')) throw logFailure(error, unit)
  }
  if (!signal.aborted) yield { kind: 'end', reason: (await getRecord(app, caller, id)).state }
}

/** A destroyed unit has no log any more. */
async function getLoggedUnit(app: App, caller: Caller, id: string): Promise<UnitRecord> {
  const unit = await getRecord(app, caller, id)
  if (unit.state === 'destroyed') throw notPossibleNow(unit, 'its log is deleted')
  return unit
}

async function storedLines(
  app: App,
  unit: UnitRecord,
  { since, limit }: Pick<LogQuery, 'limit'> & { since?: string | undefined },
): Promise<EngineLine[]> {
  const time = since === undefined ? null : parseTime(since)
  const after = since !== undefined && time === null ? since : null
  const query = { after, since: time, limit }
  if (unit.state === 'error') return await queryKeptLog(app, unit, query)
  try {
    return await reading(app, unit, () => app.fleet.engineOf(unit).logs(unit.id, query))
  } catch (error) {
    // The machine does not exist yet and printed nothing, or was undone after a failure.
    if (isEngineError(error, 'unknown_machine')) return await queryKeptLog(app, unit, query)
    throw logFailure(error, unit)
  }
}

/** The engine reads for a few calls of a team at a time; the operator is told if many wait. */
async function reading<T>(app: App, { teamId }: UnitRecord, read: () => Promise<T>): Promise<T> {
  const isOneOfFew = app.logReads.tryAcquire(teamId)
  if (!isOneOfFew) logLimitReached(app, { bound: 'readings of logs that wait', by: teamId })
  try {
    return await read()
  } finally {
    if (isOneOfFew) app.logReads.release(teamId)
  }
}

function logFailure(error: unknown, unit: UnitRecord): unknown {
  if (!isEngineError(error, 'bad_cursor')) return engineFailure(error, unit)
  const message = 'must be the `next` of an earlier answer, or an ISO time such as 2026-01-31T12:00:00Z'
  return validation([{ path: 'since', message }])
}

/** Returns the time in an ISO text, or null: then it is a cursor. */
function parseTime(since: string): Date | null {
  if (!/^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2})?)?$/.test(since)) return null
  const time = new Date(since)
  return Number.isNaN(time.getTime()) ? null : time
}

function showLine({ at, stream, text, continues }: EngineLine): LogLine {
  return { at: at.toISOString(), stream, text, ...(continues ? { continues } : {}) }
}

function toEvent(line: EngineLine): LogEvent {
  return { kind: 'line', cursor: line.cursor, line: showLine(line) }
}
