// The output of a unit in `error`. Its last lines are read before its machine is undone, and stored encrypted until
// the unit is destroyed (decisions/starts.md).

import type { Kysely } from 'kysely'
import { z } from 'zod'
import type { App } from '../../../app.ts'
import { limits } from '../../../contract/limits.ts'
import type { LogLine, LogQuery } from '../../../engine/engine.ts'
import { SECOND } from '../../../lib/clock.ts'
import { completesWithin } from '../../../lib/concurrency/completes-within.ts'
import type { Database } from '../../../store/db.ts'
import { findKeptLog, insertKeptLog } from '../../../store/kept-logs.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

type OfUnit = Pick<UnitRecord, 'id' | 'teamId'>

const READ_WITHIN_MS = 5 * SECOND

const lineSchema = z.object({
  at: z.iso.datetime().transform((at) => new Date(at)),
  stream: z.enum(['stdout', 'stderr']),
  text: z.string(),
  continues: z.literal(true).optional(),
  cursor: z.string(),
})

/**
 * Returns the newest lines of a machine that is about to be undone; an empty list if the engine does not answer in
 * time.
 */
export async function readLastLines(app: App, unit: Pick<UnitRecord, 'id' | 'hostId'>): Promise<LogLine[]> {
  let lines: LogLine[] = []
  const reading = app.fleet
    .engineOf(unit)
    .logs(unit.id, { after: null, since: null, limit: limits.pageSize.max })
    .then((found) => void (lines = found))
  await completesWithin(app.clock, READ_WITHIN_MS, reading).catch((error: unknown) => {
    app.log.warn({ err: error, unitId: unit.id }, 'log of a failed unit could not be read')
  })
  return newest(lines)
}

/** Keeps only the end of very long texts. */
function newest(lines: LogLine[]): LogLine[] {
  let characters = 0
  const first = lines.findLastIndex(({ text }) => (characters += text.length) > limits.keptLogCharacters)
  return lines.slice(first + 1)
}

/** Call it in the transaction that takes the unit to `error`. */
export async function keepLog(
  app: App,
  db: Kysely<Database>,
  { id: unitId, teamId }: OfUnit,
  lines: LogLine[],
): Promise<void> {
  if (lines.length === 0) return
  const sealed = app.secretKey.seal(Buffer.from(JSON.stringify(lines)), context(teamId, unitId))
  await insertKeptLog(db, { unitId, teamId, keptAt: app.clock.now(), sealed }, limits.keptLogsOfTeam)
}

/** Returns stored lines as the engine would; after the cursor of a line that was not stored, all of them. */
export async function queryKeptLog(
  app: App,
  { id: unitId, teamId }: OfUnit,
  { after, since, limit }: LogQuery,
): Promise<LogLine[]> {
  const sealed = await findKeptLog(app.db, { teamId, unitId })
  if (sealed === null) return []
  const text = app.secretKey.open(sealed, context(teamId, unitId)).toString()
  const lines = z.array(lineSchema).parse(JSON.parse(text))
  if (after !== null)
    return lines.slice(lines.findIndex(({ cursor }) => cursor === after) + 1).slice(0, limit)
  if (since !== null) return lines.filter(({ at }) => at >= since).slice(0, limit)
  return lines.slice(-limit)
}

function context(teamId: string, unitId: string): string[] {
  return ['kept log', teamId, unitId]
}
