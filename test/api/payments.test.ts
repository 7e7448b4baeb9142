// Buying credits over HTTP, from the call to the credits, with a stand-in for Stripe (issue 7, reliability B6, B12).

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Me } from '../../src/contract/me.ts'
import type { Payment, PaymentAnswer, PaymentList } from '../../src/contract/payment.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { reconcilePayments } from '../../src/domain/payments/reconcile.ts'
import { reconcileMachines } from '../../src/domain/units/reconcile.ts'
import { enforceLimits } from '../../src/domain/units/admission/stop-beyond-limits.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { changeTeam } from '../../src/store/teams.ts'
import { makeKey, makeMember, makeSharedTeam, makeUnit, type TestMember } from '../support/make.ts'
import { refusal, sendBy } from '../support/people.ts'
import { isReplay } from '../support/replay.ts'
import { type Answer, type Service, startService } from '../support/service.ts'
import { type FakeStripe, signedEvent, startStripe } from '../support/stripe.ts'

let stripe: FakeStripe
let service: Service
let teamId: string
let owner: TestMember

beforeAll(async () => {
  stripe = await startStripe()
  service = await startService({ loops: false, payments: stripe.settings })
})
beforeEach(async () => {
  ;({ id: teamId, owner } = await makeSharedTeam(service))
  stripe.treat('well')
})
afterAll(async () => {
  await service.close()
  await stripe.close()
})

const buy = async (by: Parameters<typeof sendBy>[3] = owner, amountCents: unknown = 2500) =>
  await sendBy<PaymentAnswer>(service, 'POST', `/v1/teams/${teamId}/payments`, by, { amountCents })

async function bought(amountCents = 2500) {
  const { status, body } = await buy(owner, amountCents)
  expect(status).toBe(201)
  const session = stripe.sessions.find(({ client_reference_id: id }) => id === body.payment.id)
  if (!session) throw new Error('there is no checkout')
  return { id: body.payment.id, session }
}

/** Runs the job until nothing is due, without advancing the clock. */
async function settle(): Promise<void> {
  for (let round = 0; round < 3; round += 1) await reconcilePayments(service.app)
}

async function hear(
  type: string,
  object: object,
  { at = service.clock.now(), secret }: { at?: Date; secret?: string } = {},
): Promise<Answer> {
  const { body, signature } = signedEvent(type, object, { at, ...(secret ? { secret } : {}) })
  return await post(body, signature)
}
const post = async (body: string, signature: string) =>
  await service.call('POST', '/v1/webhooks/stripe', { body, headers: { 'stripe-signature': signature } })

const listed = async (): Promise<Payment[]> => {
  const { body } = await sendBy<PaymentList>(service, 'GET', `/v1/teams/${teamId}/payments`, owner)
  return body.payments
}
const balance = async (): Promise<number | undefined> => {
  const { body } = await sendBy<Me>(service, 'GET', '/v1/me', owner)
  return body.teams.find(({ id }) => id === teamId)?.creditBalanceCents
}
const credits = async () =>
  await service.app.db.selectFrom('credits').select('kind').where('team_id', '=', teamId).execute()

describe('a payment', () => {
  it('is made at the provider, and becomes credits once it is paid', async () => {
    const { status, body } = await buy()
    expect(status).toBe(201)
    const { payment } = body
    expect(payment).toEqual({
      id: expect.stringMatching(/^pay_/),
      state: 'open',
      amountCents: 2500,
      checkoutUrl: expect.stringContaining('https://checkout.stripe.test/'),
      createdBy: owner.userId,
      createdAt: expect.any(String),
      closedAt: null,
    })
    const { session } = await bought(500)
    await settle()
    expect(await balance()).toBe(0)
    stripe.pay(session)
    expect(await hear('checkout.session.completed', session)).toMatchObject({ status: 200 })
    await settle()
    expect(await balance()).toBe(500)
    expect(await listed()).toMatchObject([
      { state: 'paid', amountCents: 500, checkoutUrl: null, closedAt: expect.any(String) },
      { id: payment.id, state: 'open', checkoutUrl: payment.checkoutUrl },
    ])
    expect(await credits()).toEqual([{ kind: 'topped-up' }])
  })

  it('lets units wake that were stopped without credits', async () => {
    await changeTeam(service.app.db, { id: teamId, paysAsItGoes: false })
    const { secret: key } = await makeKey(service, { teamId, userId: owner.userId })
    expect((await service.call('POST', '/v1/units', { key, body: { spec: spec() } })).status).toBe(402)
    await changeTeam(service.app.db, { id: teamId, paysAsItGoes: true })
    const { id } = await makeUnit(service, { key }, { sleep: 'never' })
    await changeTeam(service.app.db, { id: teamId, paysAsItGoes: false })
    const unit = async () => (await service.call<Unit>('GET', `/v1/units/${id}`, { key })).body
    await enforceLimits(service.app)
    await expect.poll(async () => (await unit()).state).toBe('stopped')
    const { session } = await bought()
    stripe.pay(session)
    await hear('checkout.session.completed', session)
    await settle()
    await enforceLimits(service.app)
    expect(await unit()).toMatchObject({ state: 'sleeping', stoppedReason: 'credits' })
    const exec = await service.call('POST', `/v1/units/${id}/exec`, { key, body: { cmd: ['true'] } })
    expect(exec.status).toBe(200)
  })

  it('is credited also when every event about it is lost', async () => {
    const { session } = await bought()
    stripe.pay(session)
    service.clock.advance(2 * MINUTE)
    await settle()
    expect(await balance()).toBe(2500)
  })

  it('by debit is credited when the bank confirms it, and not before', async () => {
    const [{ session: good }, { session: bad }] = [await bought(600), await bought(700)]
    for (const session of [good, bad]) {
      stripe.pay(session, 'by debit')
      await hear('checkout.session.completed', session)
    }
    await settle()
    expect((await listed()).map(({ state }) => state)).toEqual(['open', 'open'])
    service.clock.advance(10 * DAY)
    stripe.decide(good, 'succeeds')
    stripe.decide(bad, 'fails')
    await hear('checkout.session.async_payment_succeeded', good)
    await hear('checkout.session.async_payment_failed', bad)
    await settle()
    expect((await listed()).map(({ state }) => state)).toEqual(['failed', 'paid'])
    expect(await balance()).toBe(600)
  })

  it('that is not paid expires, also with events out of order', async () => {
    const { session } = await bought()
    session.status = 'expired'
    await hear('checkout.session.expired', session)
    await settle()
    await hear('checkout.session.completed', session)
    await settle()
    expect(await listed()).toMatchObject([{ state: 'expired', checkoutUrl: null }])
    expect(await balance()).toBe(0)
  })

  it.each([
    ['another sum', { amount_total: 100 }],
    ['another currency', { currency: 'usd' }],
    ['the name of another payment', { client_reference_id: 'pay_other' }],
  ])('gives no credits and logs an alarm when %s was paid', async (_what, fields) => {
    const { id, session } = await bought()
    stripe.pay(session)
    Object.assign(session, fields)
    await hear('checkout.session.completed', { ...session, client_reference_id: id })
    await settle()
    expect(await listed()).toMatchObject([{ state: 'failed' }])
    expect(await balance()).toBe(0)
    expect(service.logged.join('')).toContain(`"alarm":"payment","payment":"${id}"`)
  })
})

const spec = () => ({ name: 'web', image: 'node:22' })

describe('a refund or dispute', () => {
  it('is deducted once for each refund, and credited again when the refund fails', async () => {
    const { session } = await bought()
    stripe.pay(session)
    await hear('checkout.session.completed', session)
    await settle()
    const refund = stripe.refund(session, 1000)
    stripe.refund(session, 300, 'pending')
    const charge = { id: 'ch_1', payment_intent: session.payment_intent?.id }
    await Promise.all([1, 2, 3].map(() => hear('charge.refunded', charge)))
    await Promise.all([settle(), settle(), settle()])
    expect(await balance()).toBe(1500)
    refund.status = 'failed'
    await hear('refund.updated', refund)
    await settle()
    expect(await balance()).toBe(2500)
  })

  it('is deducted also when no event reports it', async () => {
    const { session } = await bought()
    stripe.pay(session)
    await hear('checkout.session.completed', session)
    await settle()
    stripe.refund(session, 2500)
    service.clock.advance(HOUR)
    await settle()
    expect(await balance()).toBe(0)
  })

  it('is deducted while the dispute is open, and credited when it is won', async () => {
    const { session } = await bought()
    stripe.pay(session)
    await hear('checkout.session.completed', session)
    const dispute = stripe.dispute(session, 2500)
    // Before the event of its payment, so the payment intent is not known yet.
    await hear('charge.dispute.created', dispute)
    await settle()
    await hear('charge.dispute.created', dispute)
    await settle()
    expect(await balance()).toBe(0)
    dispute.status = 'won'
    await hear('charge.dispute.closed', dispute)
    await settle()
    expect(await balance()).toBe(2500)
    expect((await credits()).map(({ kind }) => kind).toSorted()).toEqual([
      'disputed',
      'disputed',
      'topped-up',
    ])
  })
})

describe('an event of the provider', () => {
  it('is ignored unless its signature is valid and recent', async () => {
    const { session } = await bought()
    const { body, signature } = signedEvent('checkout.session.completed', session, {
      at: service.clock.now(),
    })
    const before = await service.app.db.selectFrom('payments').selectAll().orderBy('id').execute()
    const refused = [
      await post(body.replace('2500', '9900'), signature),
      await post(body, ''),
      await post(body, 't=1,v1=00'),
      await post('', signature),
      await hear('checkout.session.completed', session, { secret: 'whsec_other' }),
      await hear('checkout.session.completed', session, {
        at: new Date(service.clock.now().getTime() - 10 * MINUTE),
      }),
    ]
    expect(refused.map(refusal)).toEqual(refused.map(() => [400, 'validation']))
    expect(refusal(await post('x'.repeat(300_000), signature))).toEqual([413, 'payload_too_large'])
    expect(await service.app.db.selectFrom('payments').selectAll().orderBy('id').execute()).toEqual(before)
  })

  it.each([
    ['customer.created', { id: 'cus_1' }],
    ['checkout.session.completed', { id: 'cs_of_another_service', client_reference_id: 'order-1' }],
    ['charge.refunded', { id: 'ch_1', payment_intent: null }],
    ['charge.refunded', {}],
  ])('of type %s about another service is accepted without effect', async (type, object) => {
    expect(await hear(type, object)).toMatchObject({ status: 200, body: { received: true } })
  })

  it('gives the credits once, also when it comes several times and concurrently', async () => {
    const { session } = await bought()
    stripe.pay(session)
    for (let round = 0; round < 3; round += 1) {
      const events = Array.from({ length: 10 }, () => hear('checkout.session.completed', session))
      const rounds = Array.from({ length: 5 }, () => reconcilePayments(service.app))
      await Promise.all([...events, ...rounds])
    }
    await settle()
    expect(await balance()).toBe(2500)
    expect(await credits()).toHaveLength(1)
  })
})

describe('POST /v1/teams/{id}/payments', () => {
  it('accepts from five to a thousand euros in whole cents', async () => {
    for (const cents of [500, 501, 100_000])
      expect([cents, (await buy(owner, cents)).status]).toEqual([cents, 201])
    for (const cents of [499, 100_001, 0, -500, 500.5, '500', null]) {
      expect([cents, (await buy(owner, cents)).status]).toEqual([cents, 400])
    }
  })

  it('is allowed for owners and admins of the team', async () => {
    const admin = await makeMember(service, teamId, 'admin')
    const member = await makeMember(service, teamId, 'member')
    const { owner: stranger } = await makeSharedTeam(service)
    expect((await buy(admin)).status).toBe(201)
    expect((await buy(member)).status).toBe(403)
    expect((await buy(stranger)).status).toBe(403)
  })

  it('returns the same payment for a repeated Idempotency-Key, also after a failure of the provider', async () => {
    for (const mood of ['well', 'away', 'busy', 'drop'] as const) {
      const sessions = stripe.sessions.length
      const by = { ...owner, headers: { 'idempotency-key': `key-${mood}` } }
      stripe.treat(mood)
      const first = await buy(by)
      expect([mood, first.status]).toEqual([mood, mood === 'well' ? 201 : 503])
      stripe.treat('well')
      const [second, third] = [await buy(by), await buy(by)]
      expect(second.status).toBe(201)
      expect(isReplay(second)).toBe(true)
      expect(third.body).toEqual(second.body)
      expect(second.body.payment.checkoutUrl).not.toBeNull()
      expect(stripe.sessions).toHaveLength(sessions + 1)
    }
    expect((await listed()).map(({ state }) => state)).toEqual(['open', 'open', 'open', 'open'])
  })

  it('fails with 502 when the provider refuses', async () => {
    stripe.treat('refuse')
    expect(refusal(await buy())).toEqual([502, 'provider_error'])
    expect(await listed()).toMatchObject([{ state: 'failed', checkoutUrl: null }])
  })

  it('does not follow a redirect of the provider', async () => {
    stripe.treat('redirect')
    expect(refusal(await buy())).toEqual([503, 'unavailable'])
  })

  it('neither logs nor returns a key of the provider', async () => {
    stripe.treat('away')
    const { body } = await buy()
    service.clock.advance(3 * MINUTE)
    await reconcilePayments(service.app)
    const said = JSON.stringify(body) + service.logged.join('')
    expect(said).toContain('Stripe refused the request')
    expect(said).not.toMatch(/sk_test|whsec_/)
  })

  it(
    'expires the payment when the provider stays unavailable',
    async () => {
      stripe.treat('away')
      const sessions = stripe.sessions.length
      await buy()
      const { db } = service.app
      const due = async () =>
        await db.selectFrom('payments').select('due_at').where('team_id', '=', teamId).execute()
      for (let passed = 0; passed < 2 * HOUR; passed += 10 * MINUTE) {
        service.clock.advance(10 * MINUTE)
        await reconcilePayments(service.app)
      }
      expect(await listed()).toMatchObject([{ state: 'expired' }])
      expect(await due()).toEqual([{ due_at: null }])
      expect(stripe.sessions).toHaveLength(sessions)
    },
    60 * SECOND,
  )
})

describe('a server without a payment provider', () => {
  it('says so, and refuses to sell with 403', async () => {
    const plain = await startService({ loops: false })
    try {
      const { id, owner: by } = await makeSharedTeam(plain)
      const me = await sendBy<Me>(plain, 'GET', '/v1/me', by)
      expect(me.body.payments).toBe(false)
      expect((await sendBy<Me>(service, 'GET', '/v1/me', owner)).body.payments).toBe(true)
      const path = `/v1/teams/${id}/payments`
      expect(refusal(await sendBy(plain, 'POST', path, by, { amountCents: 500 }))).toEqual([403, 'forbidden'])
      expect((await sendBy(plain, 'GET', path, by)).body).toEqual({ payments: [] })
      expect((await plain.call('POST', '/v1/webhooks/stripe', { body: '{}' })).status).toBe(404)
    } finally {
      await plain.close()
    }
  })
})

it(
  'the provider is polled less and less often, and not without end',
  async () => {
    await bought()
    const { id, session } = await bought()
    stripe.pay(session)
    await hear('checkout.session.completed', session)
    await settle()
    let looks = 0
    const seen = async () =>
      (await service.app.db.selectFrom('payments').select('looks').where('id', '=', id).executeTakeFirst())
        ?.looks ?? 0
    for (let passed = 0; passed < 200 * DAY; passed += 5 * DAY) {
      service.clock.advance(5 * DAY)
      await reconcileMachines(service.app)
      await reconcilePayments(service.app)
      looks = Math.max(looks, await seen())
    }
    expect(looks).toBeGreaterThan(5)
    expect(looks).toBeLessThan(40)
    const left = await service.app.db
      .selectFrom('payments')
      .select('due_at')
      .where('id', '=', id)
      .executeTakeFirst()
    expect(left?.due_at).toBeNull()
  },
  60 * SECOND,
)
