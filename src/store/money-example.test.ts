// The worked example in docs/money.md matches the code: its numbers are read from the page.

import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { creditBalanceCents } from '../domain/billing/balance.ts'
import { sizeNanoCentsPerHour } from '../domain/billing/prices.ts'
import { getUnit } from '../domain/units/get.ts'
import { toNanoCents } from '../lib/money.ts'
import { insertCredit } from './credits.ts'
import { saveHeartbeats } from './heartbeats.ts'
import { chargeOpenMeters, type MeterKind } from './meters.ts'
import { changeState } from './unit-state.ts'
import { findUnit } from './units.ts'

let domain: TestDomain
let page: string
beforeAll(async () => {
  domain = await createTestDomain()
  page = await readFile(new URL('../../docs/money.md', import.meta.url), 'utf8')
})
afterAll(async () => await domain.close())

/** Returns the rows of the table with this heading, without thousands separators. */
function tableOf(heading: string): string[][] {
  const table = page.slice(page.indexOf(`| ${heading}`)).split('\n\n')[0] ?? ''
  const rows = table.split('\n').slice(2)
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replace(/(?<=\d) (?=\d)/g, '')),
  )
}

/** The number after these words, as a decimal. */
function numberAfter(words: RegExp): number {
  const found = new RegExp(`${words.source}\\s*([\\d.]*\\d)`).exec(page)?.[1]
  if (found === undefined) throw new Error(`the page has no number after ${words.source}`)
  return Number(found)
}

it('the ledger charges what docs/money.md says for a unit that runs past midnight', async () => {
  const { app } = domain
  const caller = await domain.makeCaller()
  const { id } = await makeUnit(app, caller)
  await sql`truncate meters, charges, usage_days, balances, heartbeats`.execute(app.db)
  await insertCredit(app.db, {
    id: 'credit_example',
    teamId: caller.teamId,
    kind: 'free',
    nanoCents: toNanoCents(500),
    source: 'the example',
    note: null,
    createdAt: app.clock.now(),
  })
  expect(page).toContain(
    `costs 0.5 cents an hour: ${String(sizeNanoCentsPerHour.small).replace(/(?<=\d)(?=(?:\d{3})+$)/g, ' ')} nano-cents`,
  )

  const beat = async (at: string) =>
    await saveHeartbeats(app.db, [{ id: app.fleet.local().id, at: new Date(at) }], {
      boot: 'boot',
      offsetMs: 0,
    })
  const change = async (at: string, meters: { opens: MeterKind[]; closes: MeterKind[] }) => {
    const unit = await findUnit(app.db, { teamId: caller.teamId, id, now: new Date(at) })
    if (!unit) throw new Error('the unit is gone')
    const opens = meters.opens.map((kind) => ({ kind, nanoCentsPerHour: sizeNanoCentsPerHour.small }))
    const rest = { id, from: unit, to: unit, at: new Date(at), endedAt: new Date(at), set: {} }
    expect(await changeState(app.db, { ...rest, opens, closes: meters.closes })).toBe(true)
  }
  const open = async (at: string) => await change(at, { opens: ['compute'], closes: [] })
  const close = async (at: string) => await change(at, { opens: [], closes: ['compute'] })

  await open('2027-03-01T23:59:20.300Z')
  await beat('2027-03-01T23:59:50.000Z')
  await chargeOpenMeters(app.db, { now: new Date('2027-03-01T23:59:52.000Z'), limit: 10 })
  await beat('2027-03-02T00:00:50.000Z')
  await close('2027-03-02T00:00:50.800Z')
  await beat('2027-03-02T00:10:00.000Z')
  await open('2027-03-02T00:10:00.000Z')
  await close('2027-03-02T00:10:04.015Z')

  const charges = await sql<{ row: string[] }>`
    select array[day::text, (dense_rank() over (order by meter_id))::text, from_ms::text, to_ms::text,
      (sum(nano_cents) over (order by meter_id, from_ms))::text, nano_cents::text] as row
    from charges where unit_id = ${id} order by meter_id, from_ms
  `.execute(app.db)
  const ofPage = tableOf('day | run').map((row) => row.filter((_cell, column) => column !== 4))
  expect(ofPage).toHaveLength(4)
  expect(charges.rows.map(({ row }) => row)).toEqual(ofPage)

  const days = await sql<{ row: string[] }>`
    select array[day::text, trim_scale(ms / 1000.0)::text, nano_cents::text] as row from usage_days order by day
  `.execute(app.db)
  expect(days.rows.map(({ row }) => row)).toEqual(tableOf('day | seconds'))

  const balance = (await creditBalanceCents(app.db, [caller.teamId])).get(caller.teamId)
  expect(balance).toBe(numberAfter(/its `creditBalanceCents` is/))
  expect((await getUnit(app, caller, id)).costCentsSoFar).toBe(numberAfter(/its `costCentsSoFar` is/))
})

it('the exact costs in docs/money.md equal price times time', () => {
  let before = 0n
  for (const [, run, , toMs, exact, counted] of tableOf('day | run')) {
    if (run === '2' && before === 0n) before = 90_500n
    const nanoCentsTimesMs = sizeNanoCentsPerHour.small * (before + BigInt(toMs ?? ''))
    const whole = nanoCentsTimesMs / 3_600_000n
    const thousandths = ((nanoCentsTimesMs % 3_600_000n) * 1000n) / 3_600_000n
    expect(exact).toBe(thousandths === 0n ? `${whole}` : `${whole}.${thousandths}…`)
    expect(counted).toBe(`${whole}`)
  }
})
