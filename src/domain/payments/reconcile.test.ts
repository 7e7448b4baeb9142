// Reliability B12: for a crash or error at any step of a payment, the provider makes one checkout and the ledger has
// each entry once.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import { type FakeStripe, startStripe } from '../../../test/support/stripe.ts'
import type { App } from '../../app.ts'
import { MINUTE } from '../../lib/clock.ts'
import { toCents } from '../../lib/money.ts'
import type { Caller } from '../credentials/caller.ts'
import { createPayment } from './create.ts'
import { listPaymentsOfCaller } from './list.ts'
import { reconcilePayments } from './reconcile.ts'

let stripe: FakeStripe
let domain: TestDomain
let person: Caller
let app: App

beforeAll(async () => {
  stripe = await startStripe()
  const { secretKey, webhookSecret, url } = stripe.settings
  domain = await createTestDomain({
    BERTH_STRIPE_SECRET_KEY: secretKey,
    BERTH_STRIPE_WEBHOOK_SECRET: webhookSecret,
    BERTH_STRIPE_URL: url,
  })
})
beforeEach(async () => {
  app = domain.restarted()
  person = { ...(await domain.makeCaller()), kind: 'session' }
  stripe.sessions.length = 0
})
afterEach(() => {
  expect([...domain.faults]).toEqual([])
})
afterAll(async () => {
  await domain.close()
  await stripe.close()
})

/** Runs the job several times with time between. A crash ends the process. */
async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    domain.clock.advance(3 * MINUTE)
    const died = diesAtPlace()
    await Promise.race([reconcilePayments(app), died])
    if (await isDone(died)) app = domain.restarted()
  }
}

/** Resolves when every run under way has met its crash. */
async function diesAtPlace(): Promise<void> {
  const crashes = () => [...domain.faults.values()].includes('crash')
  if (!crashes()) return await new Promise<never>(() => {})
  await expect.poll(crashes, { timeout: 3000, interval: 5 }).toBe(false)
}

async function isDone(work: Promise<unknown>): Promise<boolean> {
  return await Promise.race([work.then(() => true), new Promise<false>((done) => setImmediate(done, false))])
}

async function buy(): Promise<void> {
  const buying = createPayment(app, person, { amountCents: 2500 }, null).catch(() => {})
  const died = diesAtPlace().catch(() => {})
  await Promise.race([buying, died])
  if (await isDone(died)) app = domain.restarted()
}

const state = async () => (await listPaymentsOfCaller(app, person)).payments.map((payment) => payment.state)
const ledger = async () => {
  const rows = await app.db
    .selectFrom('credits')
    .select('nano_cents')
    .where('team_id', '=', person.teamId)
    .orderBy('id')
    .execute()
  return rows.map(({ nano_cents: nanoCents }) => toCents(nanoCents))
}

async function liveThrough(place: string | null): Promise<void> {
  await buy()
  await rounds(3)
  const [session] = stripe.sessions
  if (!session) throw new Error(`no checkout was made (${place})`)
  expect(await state()).toEqual(['open'])
  stripe.pay(session)
  await rounds(8)
  expect(await state()).toEqual(['paid'])
  stripe.refund(session, 500)
  stripe.refund(session, 200)
  await rounds(20)
}

const steps = ['payment.checkout', 'payment.open', 'payment.credit', 'payment.correct']
const places = steps.flatMap((step) => [
  ...(['crash', 'error'] as const).flatMap((trouble) => [
    { place: `${step}.before`, trouble },
    { place: `${step}.after`, trouble },
  ]),
  { place: step, trouble: 'twice' as const },
])

describe('a payment has one checkout and each credit once', () => {
  it('when nothing fails', async () => {
    await liveThrough(null)
    expect(await ledger()).toEqual([2500, -500, -200])
  })

  it.each(places)('after $trouble at $place', async ({ place, trouble }) => {
    domain.faults.set(place, trouble)
    await liveThrough(place)
    expect(stripe.sessions).toHaveLength(1)
    expect(await state()).toEqual(['paid'])
    expect(await ledger()).toEqual([2500, -500, -200])
  })

  it('when several processes reconcile at once', async () => {
    await buy()
    const [session] = stripe.sessions
    if (!session) throw new Error('no checkout was made')
    stripe.pay(session)
    stripe.refund(session, 500)
    const processes = [app, ...Array.from({ length: 4 }, () => domain.restarted())]
    for (let round = 0; round < 12; round += 1) {
      domain.clock.advance(3 * MINUTE)
      await Promise.all(processes.map((each) => reconcilePayments(each)))
    }
    expect(await ledger()).toEqual([2500, -500])
  })

  it('when the answer of the provider is lost', async () => {
    stripe.treat('drop')
    await buy()
    stripe.treat('well')
    await rounds(2)
    expect(stripe.sessions).toHaveLength(1)
    expect(await state()).toEqual(['open'])
  })
})
