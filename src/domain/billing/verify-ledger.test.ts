// The ledger check finds what does not add up (reliability B11).

import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import type { App } from '../../app.ts'
import { HOUR } from '../../lib/clock.ts'
import type { Caller } from '../credentials/caller.ts'
import { chargeMeters } from './charge.ts'
import { verifyLedger } from './verify-ledger.ts'

let domain: TestDomain
let caller: Caller
let alarms: Record<string, unknown>[]
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
  await makeUnit(domain.app, caller, { volume: { mount: '/data', gb: 10 } })
  domain.clock.advance(2 * HOUR)
  await chargeMeters(domain.app)
})
afterAll(async () => await domain.close())

async function verify(): Promise<unknown[]> {
  alarms = []
  const app: App = domain.restarted()
  app.log = { ...app.log, error: (about: Record<string, unknown>) => alarms.push(about) } as never
  await verifyLedger(app)
  return alarms.map(({ what }) => what)
}

it('the ledger check raises no alarm for a sound ledger, and runs once a day', async () => {
  expect(await verify()).toEqual([])
  await sql`update balances set nano_cents = nano_cents + 1 where team_id = ${caller.teamId}`.execute(
    domain.app.db,
  )
  expect(await verify()).toEqual([])
  domain.clock.advance(25 * HOUR)
  expect(await verify()).toEqual(['balance'])
})

const tampers = {
  'a balance that is a nano-cent off': {
    tamper: sql`update balances set nano_cents = nano_cents + 1`,
    found: ['balance'],
  },
  'a day that lost a charge': {
    tamper: sql`delete from usage_days where kind = 'volume'`,
    found: ['charges of a day'],
  },
  'a meter with a changed price': {
    tamper: sql`update meters set price_nano_cents_per_hour = price_nano_cents_per_hour + 1 where kind = 'compute'`,
    found: ['charges of a unit'],
  },
  'a deleted charge': {
    tamper: sql`
      alter table charges disable trigger user;
      delete from charges where kind = 'compute';
      alter table charges enable trigger user`,
    found: ['charges of a unit', 'time of a meter', 'charges of a day', 'balance'],
  },
}

it.each(Object.entries(tampers))('the ledger check finds %s', async (_what, { tamper, found }) => {
  await domain.app.db.deleteFrom('balances').where('team_id', '<>', caller.teamId).execute()
  await tamper.execute(domain.app.db)
  expect(new Set(await verify())).toEqual(new Set(found))
})
