// Reliability L9: a list of a large team is read by indexes, so it takes no longer when the team has more. Judged by
// the number of rows that Postgres says it has read, because a clock would measure the machine.

import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { fillTeam } from '../../bench/filled-team.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { isDeep } from '../support/part-of.ts'
import { type Service, startService } from '../support/service.ts'

const [UNITS, AUDIT] = isDeep ? [10_000, 1_000_000] : [2000, 20_000]
const PAGE = 50

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService({ loops: false })
  team = await makeTeam(service)
  const keys = await service.app.db.selectFrom('credentials').select('id').execute()
  await fillTeam(service.app.db, {
    teamId: team.teamId,
    units: UNITS,
    audit: AUDIT,
    keyIds: keys.map(({ id }) => id),
  })
  // Filling reads all units once, for their meters: that must not count as a read of a list.
  await reported(async () => (await readOf('units')).scanned >= UNITS)
}, 1_200_000)
afterAll(async () => await service.close())

/** The number of rows of a table that were read since the database began, by sequential scans and by indexes. */
async function readOf(table: string): Promise<{ scanned: number; found: number }> {
  await sql`select pg_stat_clear_snapshot()`.execute(service.app.db)
  const { rows } = await sql<{ scanned: string; found: string }>`
    select seq_tup_read as scanned, idx_tup_fetch as found from pg_stat_user_tables where relname = ${table}
  `.execute(service.app.db)
  return { scanned: Number(rows[0]?.scanned), found: Number(rows[0]?.found) }
}

/** Postgres reports the counts of a session a second later, with the session's next statement. */
async function reported(isThere: () => Promise<boolean>): Promise<void> {
  const ask = async () => {
    await Promise.all(Array.from({ length: 10 }, () => sql`select 1`.execute(service.app.db)))
    if (!(await isThere())) throw new Error('The counts are not reported yet.')
  }
  await vi.waitFor(ask, { timeout: 60_000, interval: 500 })
}

test.each([
  ['/v1/units', 'units'],
  ['/v1/audit', 'audit'],
])('%s reads about as many rows as it returns', { timeout: 1_200_000 }, async (path, table) => {
  const before = await readOf(table)
  const answer = await service.call('GET', `${path}?limit=${PAGE}`, { key: team.key })
  expect(answer.status).toBe(200)
  await reported(async () => (await readOf(table)).found > before.found)
  const after = await readOf(table)
  expect(after.scanned - before.scanned).toBe(0)
  expect(after.found - before.found).toBeLessThan(10 * PAGE)
})
