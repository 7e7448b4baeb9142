// Older rules may name units, which had no effect (decisions/egress.md): an upgrade takes these entries out of them.

import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { up } from './migrations/0050-units-in-rules.ts'

let domain: TestDomain

beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

it('an upgrade takes names of units out of the rules of units, keys and teams, and nothing else', async () => {
  const { db } = domain.app
  const caller = await domain.makeCaller()
  const listed = (...allow: string[]) => ({ mode: 'listed' as const, allow, siblings: 'none' as const })
  const kept = ['b.example.com', 'internal.example.com', 'a.example.com:22', 'preset:npm']
  const [old, other, only] = [
    await makeUnit(domain.app, caller, { name: 'old' }),
    await makeUnit(domain.app, caller, { name: 'other', egress: listed(...kept) }),
    await makeUnit(domain.app, caller, { name: 'only' }),
  ]
  const [first = '', ...rest] = kept
  const before = JSON.stringify(listed(first, 'db.shop.internal:5432', ...rest, '*.shop.internal'))
  const { teamId } = caller
  await sql`update units set egress = ${before}::jsonb where id = ${old.id}`.execute(db)
  await sql`update units set egress = ${JSON.stringify(listed('x.internal'))}::jsonb where id = ${only.id}`.execute(
    db,
  )
  await sql`update teams set egress = ${before}::jsonb where id = ${teamId}`.execute(db)
  await sql`
    update credentials set policy = jsonb_set(policy, '{egress}', ${before}::jsonb) where team_id = ${teamId}
  `.execute(db)

  await up(db as Kysely<unknown>)
  const rows = async (from: 'units' | 'teams') =>
    await db
      .selectFrom(from)
      .select(['id', 'egress'])
      .where(from === 'teams' ? 'id' : 'team_id', '=', teamId)
      .execute()
  expect(Object.fromEntries((await rows('units')).map(({ id, egress }) => [id, egress]))).toEqual({
    [old.id]: listed(...kept),
    [other.id]: listed(...kept),
    [only.id]: listed(),
  })
  expect(await rows('teams')).toEqual([{ id: teamId, egress: listed(...kept) }])
  const keys = await db.selectFrom('credentials').select('policy').where('team_id', '=', teamId).execute()
  expect(keys.map(({ policy }) => policy.egress)).toEqual(keys.map(() => listed(...kept)))
  expect(keys).not.toEqual([])
})
