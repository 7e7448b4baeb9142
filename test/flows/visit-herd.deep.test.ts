// Five hundred visits and fifty PostgreSQL sessions reach a sleeping stack within 100 ms (reliability L1): each unit wakes
// once, and every client is served or told to retry later.

import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, destroyAll } from '../support/berth-units.ts'
import { expectInvariants, withDatabase } from '../support/host-invariants.ts'
import { useBerth } from '../support/use-berth.ts'

const VISITS = 500
const SESSIONS = 50
const WITHIN_MS = 100
const PASSWORD = 'of the herd'

const berth = useBerth(null)
let ca: string
let units: Unit[]
let web: URL
let db: URL

async function expose(unit: Unit, port: number, protocol: string): Promise<URL> {
  const body = { port, protocol, mode: 'public' }
  const answer = await berth.call<Exposed>('POST', `/v1/units/${unit.id}/expose`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return new URL(answer.body.url.replace(/^\w+:/, 'https:'))
}

type Answer = { status: number; retryAfter: string | undefined }

function visit(): Promise<Answer> {
  const { hostname, port } = web
  return new Promise((resolve, reject) => {
    const to = {
      host: '127.0.0.1',
      port,
      servername: hostname,
      headers: { host: hostname },
      ca,
      agent: false,
    }
    const asked = request(to, (response) => {
      response.resume()
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] }),
      )
    })
    asked.on('error', reject).end()
  })
}

async function session(): Promise<string> {
  const client = new pg.Client({
    host: db.hostname,
    port: Number(db.port),
    user: 'postgres',
    password: PASSWORD,
    ssl: { ca },
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ answer: string }>(`select 'served' as answer`)
    return rows[0]?.answer ?? 'nothing'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  } finally {
    await client.end().catch(() => {})
  }
}

const spread = <T>(count: number, one: () => Promise<T>) =>
  Promise.all(
    Array.from({ length: count }, async (_, index) => {
      await delay((index * WITHIN_MS) / count)
      return await one()
    }),
  )

async function runsBegun(): Promise<number[]> {
  const rows = await withDatabase(await berth.instance(), (store) =>
    store.selectFrom('meters').select('unit_id').execute(),
  )
  return units.map(({ id }) => rows.filter((row) => row.unit_id === id).length)
}

describe.each([
  { tier: 'frozen', frozenFor: 'never' },
  { tier: 'cold', frozenFor: '0s' },
])('a stack that sleeps $tier', ({ frozenFor }) => {
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: frozenFor })
    ca = await readFile(berth.credentials.caFile ?? '', 'utf8')
    const env = { POSTGRES_PASSWORD: PASSWORD }
    const stack = `stack-${frozenFor}`
    units = [
      await createUnit(berth, { name: 'db', image: 'berth.local/postgres:15', ports: [5432], env }, stack),
      await createUnit(berth, { name: 'web', image: 'berth.local/nginx:1.22', ports: [80] }, stack),
    ]
    const [first, second] = units
    if (!first || !second) throw new Error('there is no stack')
    db = await expose(first, 5432, 'postgres')
    web = await expose(second, 80, 'http')
    // PostgreSQL initializes its cluster first.
    await eventually(async () => expect(await session()).toBe('served'))
    await eventually(async () => expect((await visit()).status).toBe(200))
  })
  afterAll(() => destroyAll(berth))

  it('is woken once by 500 visits and 50 database sessions, which are served or told to retry', async () => {
    const path = `/v1/units/${units[0]?.id}/sleep`
    await eventually(async () => {
      const answer = await berth.call('POST', path, { sleep: '30m', stack: true, now: true })
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    })
    const before = await runsBegun()
    const [visits, sessions] = await Promise.all([spread(VISITS, visit), spread(SESSIONS, session)])
    const told = new Set(
      visits.map(({ status, retryAfter }) => (status === 503 && retryAfter ? 'come again' : String(status))),
    )
    for (const answer of told) expect(['200', 'come again']).toContain(answer)
    expect(told).toContain('200')
    // 57P03: cannot connect now.
    for (const answer of new Set(sessions)) expect(['served', '57P03']).toContain(answer)
    expect(sessions).toContain('served')
    expect(await runsBegun()).toEqual(before.map((count) => count + 1))
    await expectInvariants(berth)
  })
})
