// Reliability F33: the server is killed repeatedly during calls. Every authenticated call has exactly one audit row,
// with the status that its caller was told, if any.

import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createKey } from '../../src/domain/credentials/keys.ts'
import { unrestrictedPolicy } from '../../src/domain/credentials/unrestricted-policy.ts'
import { createAccount } from '../../src/domain/accounts/create.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/store/db.ts'
import { type ApiProcess, startApiProcess } from '../support/api-process.ts'
import { createTestDatabase } from '../support/postgres.ts'

const KILLS = 2
const CALLERS = 8

const calls: [method: string, path: string, body?: object][] = [
  ['GET', '/v1/units'],
  ['GET', '/v1/units/nobody'],
  ['GET', '/v1/units?limit=0'],
  ['POST', '/v1/units', { spec: { name: 'BAD' } }],
  ['POST', '/v1/stacks', { name: 'taken' }],
]

test('a call has at most one audit row, with the status its caller was told, when servers are killed', {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase()
  const db = openDatabase(database.url, silentLog)
  const input = {
    databaseUrl: database.url,
    settings: { BERTH_RATE_REQUESTS: '1000000', BERTH_RATE_CREATIONS: '1000000' },
    secretKey: randomBytes(32).toString('hex'),
  }
  const key = await makeKey()
  let server: ApiProcess = await startApiProcess(input)
  let over = false
  /** The status that the caller of each request was told, or null. */
  const told = new Map<string, number | null>()

  async function makeKey(): Promise<string> {
    const createdAt = new Date()
    const { userId, teamId } = await createAccount(db, {
      email: 'person@example.test',
      name: 'Person',
      admin: false,
      plan: 'team',
      paysAsItGoes: true,
      freeCreditsCents: 0,
      createdAt,
    })
    const policy = unrestrictedPolicy
    return (await createKey(db, { teamId, name: 'key', policy, createdBy: userId, createdAt })).secret
  }

  async function call(requestId: string): Promise<void> {
    const [method, path, body] = calls[told.size % calls.length] ?? ['GET', '/v1/units']
    told.set(requestId, null)
    const response = await fetch(server.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        'x-request-id': requestId,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    told.set(requestId, response.status)
    await response.arrayBuffer()
  }

  async function keepCalling(caller: number): Promise<void> {
    for (let count = 0; !over; count += 1) {
      await call(`caller-${caller}-${count}`).catch(async () => await delay(20))
    }
  }

  const callers = Array.from({ length: CALLERS }, (_, caller) => keepCalling(caller))
  try {
    for (let kill = 0; kill < KILLS; kill += 1) {
      const answered = () => [...told.values()].filter((status) => status !== null).length
      const before = answered()
      await expect.poll(answered, { timeout: 20_000 }).toBeGreaterThan(before + 50 + 13 * kill)
      await server.kill()
      server = await startApiProcess(input)
    }
  } finally {
    over = true
    await Promise.all(callers)
    await server.stop()
  }

  const rows = await db.selectFrom('audit').select(['request_id', 'status']).execute()
  const statuses = new Map<string, (number | null)[]>()
  for (const row of rows) statuses.set(row.request_id, [...(statuses.get(row.request_id) ?? []), row.status])
  await db.destroy()
  await database.drop()

  let cutOff = 0
  for (const [requestId, status] of told) {
    const found = statuses.get(requestId) ?? []
    if (status !== null) expect([requestId, found]).toEqual([requestId, [status]])
    else cutOff += 1
    expect(found.length).toBeLessThanOrEqual(1)
  }
  expect(cutOff).toBeGreaterThan(0)
  expect([...statuses.keys()].filter((requestId) => !told.has(requestId))).toEqual([])
})
