// The rules of an Idempotency-Key, tried with a route that inserts one row.

import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import type { App } from '../../app.ts'
import { conflict, providerError, unavailable } from '../../contract/errors.ts'
import { DAY, HOUR } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import type { Database } from '../../store/db.ts'
import { insertStack } from '../../store/stacks.ts'
import { answerOnce, forgetOldKeys, type KeyedCall, type Once } from './once.ts'

type Made = { id: string }

let domain: TestDomain
let teamId: string

beforeAll(async () => {
  domain = await createTestDomain()
  teamId = (await domain.makeCaller()).teamId
})
afterAll(async () => await domain.close())

function newCall(changes: Partial<KeyedCall['name']> = {}): KeyedCall {
  const name = { teamId, route: 'POST /v1/stacks', key: randomUUID(), ...changes }
  return { name, request: { meant: 'a stack', sent: 'a stack' } }
}

async function insert(app: App, db: Kysely<Database>): Promise<Made> {
  const id = newId('stack')
  await insertStack(db, {
    id,
    teamId,
    name: id,
    createdAt: app.clock.now(),
    sleep: null,
    isUnnamed: false,
    madeBy: null,
  })
  return { id }
}

/** All work is one transaction, so the kept value is the answer. */
const makeStack = (app: App) => async (once: Once) =>
  await app.db.transaction().execute(async (db) => {
    await once.claim(db)
    const made = await insert(app, db)
    await once.keep(db, made)
    return made
  })

const keptIsTheAnswer = async (kept: unknown) => kept as Made

const answer = async (call: KeyedCall, app = domain.app) =>
  await answerOnce<Made>(app, call, { make: makeStack(app), resume: keptIsTheAnswer })

const countStacks = async (): Promise<number> =>
  (await domain.app.db.selectFrom('stacks').select('id').where('team_id', '=', teamId).execute()).length

describe('a request whose work is one transaction', () => {
  test('is carried out once by many concurrent calls with the same key', async () => {
    const before = await countStacks()
    const call = newCall()
    const answers = await Promise.all(Array.from({ length: 20 }, () => answer(call)))
    expect(new Set(answers.map((each) => each.kind === 'done' && each.value.id)).size).toBe(1)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(await countStacks()).toBe(before + 1)
  })

  test('is answered from its stored result after a crash', async () => {
    const call = newCall()
    domain.faults.set('idempotency.answer.before', 'crash')
    void answer(call)
    await expect.poll(() => domain.faults.size).toBe(0)
    const before = await countStacks()
    const again = await answer(call, domain.restarted())
    expect(again).toMatchObject({
      kind: 'done',
      replayed: true,
      value: { id: expect.stringMatching(/^stack_/) },
    })
    expect(await countStacks()).toBe(before)
  })

  test('leaves neither a row nor a used key when its transaction fails', async () => {
    const before = await countStacks()
    const call = newCall()
    const refusals = [conflict('The name is taken.'), new Error('a fault')]
    for (const refusal of refusals) {
      const make = async (once: Once) =>
        await domain.app.db.transaction().execute(async (db): Promise<Made> => {
          await once.claim(db)
          await insert(domain.app, db)
          throw refusal
        })
      const ended = answerOnce(domain.app, call, { make, resume: keptIsTheAnswer })
      if (refusal === refusals[0]) expect(await ended).toMatchObject({ kind: 'refused', replayed: false })
      else await expect(ended).rejects.toThrow('a fault')
    }
    expect(await countStacks()).toBe(before)
    expect(await answer(call)).toMatchObject({ kind: 'done', replayed: false })
  })
})

describe('the stored answer of a request', () => {
  test('is a failure only when the failure is final', async () => {
    const endings: { error: Error; isKept: boolean }[] = [
      { error: providerError('It broke.', { details: { unitId: 'u' } }), isKept: true },
      { error: unavailable('Away.', 1), isKept: false },
      { error: new Error('a fault'), isKept: false },
    ]
    for (const { error, isKept } of endings) {
      const call = newCall()
      const make = async (once: Once) => {
        await makeStack(domain.app)(once)
        throw error
      }
      const first = answerOnce<Made>(domain.app, call, { make, resume: keptIsTheAnswer })
      if (isKept) expect(await first).toMatchObject({ kind: 'refused', error, replayed: false })
      else await expect(first).rejects.toBe(error)
      const again = await answer(call)
      expect(again.replayed).toBe(true)
      if (isKept) expect(again).toMatchObject({ kind: 'refused', error })
      else expect(again).toMatchObject({ kind: 'done', value: { id: expect.any(String) } })
    }
  })

  test('is the first one written, also when a retry was faster than the original call', async () => {
    const call = newCall()
    const kept = Promise.withResolvers<void>()
    const finish = Promise.withResolvers<void>()
    const slow = answerOnce<Made>(domain.app, call, {
      make: async (once) => {
        await makeStack(domain.app)(once)
        kept.resolve()
        await finish.promise
        return { id: 'seen later' }
      },
      resume: keptIsTheAnswer,
    })
    await kept.promise
    const fast = await answerOnce(domain.app, call, {
      make: makeStack(domain.app),
      resume: async () => ({ id: 'seen first' }),
    })
    finish.resolve()
    expect(fast).toEqual({ kind: 'done', value: { id: 'seen first' }, replayed: true })
    expect(await slow).toEqual({ kind: 'done', value: { id: 'seen first' }, replayed: false })
  })

  test('that took a day does not overwrite that of the next call', async () => {
    const call = newCall()
    const kept = Promise.withResolvers<void>()
    const finish = Promise.withResolvers<void>()
    const slow = answerOnce<Made>(domain.app, call, {
      make: async (once) => {
        const made = await makeStack(domain.app)(once)
        kept.resolve()
        await finish.promise
        return made
      },
      resume: keptIsTheAnswer,
    })
    await kept.promise
    domain.clock.advance(DAY)
    const next = await answer(call)
    expect(next.replayed).toBe(false)
    finish.resolve()
    expect(await slow).not.toEqual(next)
    expect(await answer(call)).toEqual({ ...next, replayed: true })
  })
})

describe('an Idempotency-Key', () => {
  test('belongs to one team and one route', async () => {
    const call = newCall()
    const other = await domain.makeCaller()
    const first = await answer(call)
    for (const changes of [{ teamId: other.teamId }, { route: 'POST /v1/keys' }]) {
      const next = await answer({ ...call, name: { ...call.name, ...changes } })
      expect(next.replayed).toBe(false)
      expect(next).not.toEqual(first)
    }
  })

  test('cannot be opened by another team when its row is moved there', async () => {
    const call = newCall()
    const other = await domain.makeCaller()
    await answer(call)
    await domain.app.db
      .updateTable('idempotency_keys')
      .set({ team_id: other.teamId })
      .where('key', '=', call.name.key)
      .execute()
    await expect(answer({ ...call, name: { ...call.name, teamId: other.teamId } })).rejects.toThrow()
  })

  test('for which the route stored nothing makes the call fail instead of running twice', async () => {
    const make = async (once: Once) => {
      await domain.app.db.transaction().execute(async (db) => await once.claim(db))
      return { id: 'made' }
    }
    const call = newCall()
    for (const _time of [1, 2]) {
      const ended = answerOnce(domain.app, call, { make, resume: keptIsTheAnswer })
      await expect(ended).rejects.toThrow('stored')
    }
  })

  test('is deleted after a day, the oldest first and at most a thousand a round', async () => {
    await domain.app.db.deleteFrom('idempotency_keys').execute()
    const now = domain.clock.now().getTime()
    const rows = Array.from({ length: 1500 }, (_, index) => ({
      team_id: teamId,
      route: 'POST /v1/stacks',
      key: String(index),
      claim: 'old',
      request: Buffer.alloc(1),
      kept: null,
      answer: null,
      claimed_at: new Date(now - DAY - index * 1000),
    }))
    const young = rows
      .slice(0, 10)
      .map((row) => ({ ...row, key: `y${row.key}`, claimed_at: new Date(now - DAY + HOUR) }))
    await domain.app.db
      .insertInto('idempotency_keys')
      .values([...rows, ...young])
      .execute()
    const left = async () =>
      (await domain.app.db.selectFrom('idempotency_keys').select('key').execute()).map(({ key }) => key)
    await forgetOldKeys(domain.app)
    expect((await left()).toSorted()).toEqual(
      [...rows.slice(0, 500), ...young].map(({ key }) => key).toSorted(),
    )
    await forgetOldKeys(domain.app)
    expect((await left()).toSorted()).toEqual(young.map(({ key }) => key))
  })
})
