import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createTestDomain, type TestDomain } from '../../test/support/domain.ts'
import type { App } from '../app.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { newId } from '../lib/ids.ts'
import { insertStack } from '../store/stacks.ts'
import { jsonBody } from './http/body.ts'
import { defineRoute, noParams, noQuery } from './route.ts'

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

const makeStack = defineRoute({
  method: 'POST',
  path: '/v1/stacks',
  noun: 'stack',
  summary: 'Make a stack',
  action: 'stack.create',
  kind: 'change',
  params: noParams,
  query: noQuery,
  body: jsonBody(z.strictObject({ name: z.string() })),
  status: 201,
  response: z.strictObject({ id: z.string(), name: z.string() }),
  errors: [],
  target: () => null,
  record: ({ body }) => body,
  outcome: ({ id }) => ({ target: id }),
  idempotent: true,
  handle: async (app, { body: { name } }, { caller: { teamId }, once }) =>
    await app.db.transaction().execute(async (db) => {
      await once?.claim(db)
      const made = { id: newId('stack'), name }
      await insertStack(db, {
        ...made,
        teamId,
        createdAt: app.clock.now(),
        sleep: null,
        isUnnamed: false,
        madeBy: null,
      })
      await once?.keep(db, made)
      return made
    }),
})

async function call(app: App, caller: Caller, body: object, idempotencyKey: string | null) {
  let replayed = false
  const prepared = makeStack.prepare({
    params: {},
    query: {},
    body: Buffer.from(JSON.stringify(body)),
    idempotencyKey,
  })
  const addHeader = (name: string) => {
    if (name === 'idempotent-replayed') replayed = true
  }
  const context = {
    wantsStream: false,
    lastEventId: null,
    stripeSignature: null,
    signal: new AbortController().signal,
    addHeader,
  }
  return { ...(await prepared.run(app, context, caller)), replayed, record: prepared.record }
}

test('a route that runs its own transaction replays its answer for a repeated Idempotency-Key', async () => {
  const caller = await domain.makeCaller()
  const first = await call(domain.app, caller, { name: 'one' }, 'key')
  expect(first).toMatchObject({
    replayed: false,
    body: { name: 'one' },
    record: { name: 'one', idempotencyKey: 'key' },
  })
  const again = await call(domain.app, caller, { name: 'one' }, 'key')
  expect(again).toMatchObject({ replayed: true, body: 'body' in first && first.body })
  expect('outcome' in again && again.outcome).toEqual({ target: 'body' in first && Object(first.body).id })
  await expect(call(domain.app, caller, { name: 'two' }, 'key')).rejects.toMatchObject({ status: 409 })
  expect(await call(domain.app, caller, { name: 'two' }, null)).toMatchObject({
    replayed: false,
    record: { name: 'two' },
  })
})

test('an answer that was lost before it could be stored is replayed after a restart', async () => {
  const caller = await domain.makeCaller()
  domain.faults.set('idempotency.answer.before', 'error')
  await expect(call(domain.app, caller, { name: 'lost' }, 'key')).rejects.toThrow()
  const found = await call(domain.restarted(), caller, { name: 'lost' }, 'key')
  expect(found).toMatchObject({ replayed: true, body: { name: 'lost' } })
  const stacks = await domain.app.db
    .selectFrom('stacks')
    .select('id')
    .where('team_id', '=', caller.teamId)
    .execute()
  expect(stacks).toEqual([{ id: 'body' in found && Object(found.body).id }])
})
