// A connection to Postgres that breaks at any statement of any call that writes (reliability F15): before the
// statement reaches the server, or after it ran and before its reply. The caller gets a true answer or is told to
// retry, a retry has its effect once, and work that was left half done is completed and billed for what it ran.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Kysely } from 'kysely'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Database } from '../../src/store/db.ts'
import { verifyLedgerOfTeam } from '../../src/store/verify-ledger.ts'
import { type BreakableService, startBreakableService } from '../support/breakable-service.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import type { Side } from '../support/postgres-proxy.ts'
import type { Answer, Service } from '../support/service.ts'

let broken: BreakableService
let service: Service
let db: Kysely<Database>
/** The number of commands that ran, by unit. */
const ran = new Map<string, number>()
const sleeps = { sleep: '30m', now: true }

beforeAll(async () => {
  broken = await startBreakableService()
  service = broken.service
  db = broken.db
  service.engine.onExec(({ id, argv }) => {
    if (argv[0] !== 'count') return null
    ran.set(id, (ran.get(id) ?? 0) + 1)
    return { stdout: 'counted' }
  })
})
afterAll(async () => await broken.close())

type Sent = { method: string; path: string; body?: unknown; cookie?: string }
type Case = {
  /** Returns the request; makes the units that it needs. */
  prepare: (team: TestTeam) => Promise<Sent>
  /** Checks what must be true after a successful answer. */
  check: (team: TestTeam, sent: Sent, answer: Answer) => Promise<void>
  status?: number
}

const unitsOf = async ({ teamId }: TestTeam) =>
  await db
    .selectFrom('units')
    .select(['id', 'name', 'state', 'generation'])
    .where('team_id', '=', teamId)
    .orderBy('id')
    .execute()

const onUnit =
  (method: string, rest: string, body?: unknown, begin?: (team: TestTeam, unit: Unit) => Promise<unknown>) =>
  async (team: TestTeam): Promise<Sent> => {
    const unit = await makeUnit(service, team)
    await begin?.(team, unit)
    return { method, path: `/v1/units/${unit.id}${rest}`, ...(body === undefined ? {} : { body }) }
  }
const asleep = async ({ key }: TestTeam, { id }: Unit) =>
  expect((await service.call('POST', `/v1/units/${id}/sleep`, { key, body: sleeps })).status).toBe(200)
const stopped = async ({ key }: TestTeam, { id }: Unit) =>
  expect((await service.call('POST', `/v1/units/${id}/stop`, { key })).status).toBe(200)

/** The team has one unit, in the given state. */
const isOne =
  (state: string) =>
  async (team: TestTeam): Promise<void> => {
    expect(await unitsOf(team)).toMatchObject([{ state }])
  }

const cases: Record<string, Case> = {
  'a create': {
    prepare: async () => ({
      method: 'POST',
      path: '/v1/units',
      body: { spec: { name: 'web', image: 'node:22', env: { TOKEN: { secret: 'TOKEN' } } }, stack: 'shop' },
    }),
    status: 201,
    check: async (team, _sent, { body }) => {
      const { units, outputs } = body as RunResult
      expect(await unitsOf(team)).toMatchObject([{ id: units[0]?.id, state: 'running', generation: 1 }])
      expect(Object.keys(outputs)).toEqual(['TOKEN'])
    },
  },
  'an exec that wakes': {
    prepare: onUnit('POST', '/exec', { cmd: ['count'] }, asleep),
    check: async (team) => {
      const [unit] = await unitsOf(team)
      expect(unit).toMatchObject({ state: 'running', generation: 1 })
      expect(ran.get(unit?.id ?? '')).toBe(1)
    },
  },
  'a stop': { prepare: onUnit('POST', '/stop'), check: isOne('stopped') },
  'a start': { prepare: onUnit('POST', '/start', undefined, stopped), check: isOne('running') },
  'a sleep': { prepare: onUnit('POST', '/sleep', sleeps), check: isOne('sleeping') },
  'a destroy': { prepare: onUnit('DELETE', ''), check: isOne('destroyed') },
  'a fork': {
    prepare: onUnit('POST', '/fork', { name: 'copy' }),
    status: 201,
    check: async (team, _sent, { body }) => {
      const [copy] = (body as ForkResult).units
      const units = await unitsOf(team)
      expect(units).toHaveLength(2)
      expect(units).toContainEqual({ id: copy?.id, name: 'copy', state: 'running', generation: 1 })
    },
  },
  'an expose': {
    prepare: onUnit('POST', '/expose', { port: 8080 }),
    check: async (team) => {
      const endpoints = db.selectFrom('endpoints').innerJoin('units', 'units.id', 'endpoints.unit_id')
      const live = endpoints.where('units.team_id', '=', team.teamId).where('retired_at', 'is', null)
      expect(await live.select('endpoints.id').execute()).toHaveLength(1)
    },
  },
  'a new stack': {
    prepare: async () => ({ method: 'POST', path: '/v1/stacks', body: { name: 'shop' } }),
    status: 201,
    check: async ({ teamId }) => {
      const stacks = await db.selectFrom('stacks').select('name').where('team_id', '=', teamId).execute()
      expect(stacks.filter(({ name }) => name === 'shop')).toHaveLength(1)
    },
  },
  'a new key': {
    prepare: async (team) => ({
      method: 'POST',
      path: '/v1/keys',
      body: { name: 'ci' },
      cookie: await makeSession(service, team),
    }),
    status: 201,
    check: async ({ teamId }) => {
      const keys = db.selectFrom('credentials').select('id').where('team_id', '=', teamId)
      expect(await keys.where('name', '=', 'ci').execute()).toHaveLength(1)
    },
  },
  'a new policy': {
    prepare: async (team) => ({
      method: 'PATCH',
      path: `/v1/keys/${team.keyId}`,
      body: { policy: { maxConcurrentUnits: 3 } },
      cookie: await makeSession(service, team),
    }),
    check: async ({ keyId }) => {
      const { policy } = await db
        .selectFrom('credentials')
        .select('policy')
        .where('id', '=', keyId)
        .executeTakeFirstOrThrow()
      expect(policy.maxConcurrentUnits).toBe(3)
    },
  },
}

async function send({ method, path, body, cookie }: Sent, { key }: TestTeam): Promise<Answer> {
  const isKeyed = method === 'POST' && !/\/(?:exec|stop|start|sleep|expose)$/.test(path)
  return await service.call(method, path, {
    ...(cookie === undefined ? { key } : { cookie }),
    ...(body === undefined ? {} : { body }),
    headers: { origin: 'http://berth.test', ...(isKeyed ? { 'idempotency-key': 'once' } : {}) },
  })
}

const seen = new Set<string>()

describe.each(Object.entries(cases))(
  'when the database connection breaks at any statement of %s',
  (_name, { prepare, check, status = 200 }) => {
    test.each<Side>(['before', 'after'])(
      '%s it runs, the call takes effect once',
      async (side) => {
        for (let statement = 0; ; statement++) {
          const team = await makeTeam(service)
          const sent = await prepare(team)
          broken.proxy.breakAt(statement, side)
          let answer = await send(sent, team)
          const broke = broken.proxy.brokeAt()
          const where = `${side} ${statement}: ${broke}`
          for (let again = 0; answer.status === 503 && again < 3; again++) {
            expect([where, Number(answer.headers.get('retry-after')) > 0]).toEqual([where, true])
            await broken.goRound()
            answer = await send(sent, team)
          }
          expect([where, answer.status, answer.body]).toEqual([where, status, expect.anything()])
          await check(team, sent, answer).catch((error: unknown) => {
            throw new Error(where, { cause: error })
          })
          expect([where, await broken.settle()]).toEqual([where, []])
          await check(team, sent, answer)
          expect([where, await verifyLedgerOfTeam(db, team.teamId)]).toEqual([where, []])
          if (broke === null) break
          seen.add(`${side} ${broke.split(' ')[0]}`)
        }
      },
      120_000,
    )
  },
)

test('the broken statements include begin, insert, update and commit', () => {
  for (const side of ['before', 'after']) {
    for (const word of ['begin', 'insert', 'update', 'commit']) expect(seen).toContain(`${side} ${word}`)
  }
})
