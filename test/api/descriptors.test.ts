// Reliability F18: a server without free file descriptors refuses new connections, answers connected clients, and
// serves all again once descriptors are free. It is started with few of them, because they cannot be taken from a
// running process.

import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createKey } from '../../src/domain/credentials/keys.ts'
import { unrestrictedPolicy } from '../../src/domain/credentials/unrestricted-policy.ts'
import { createAccount } from '../../src/domain/accounts/create.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/store/db.ts'
import { startApiProcess } from '../support/api-process.ts'
import { createTestDatabase } from '../support/postgres.ts'

const DESCRIPTORS = 160

test('a server without free file descriptors refuses connections, and recovers', {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase()
  const db = openDatabase(database.url, silentLog)
  const input = { databaseUrl: database.url, settings: {}, secretKey: randomBytes(32).toString('hex') }
  const server = await startApiProcess(input, [], DESCRIPTORS)
  const { hostname, port } = new URL(server.baseUrl)
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  const crowd = new Set<Socket>()

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

  const key = await makeKey()
  /** Returns null for a connection that was refused. */
  const ask = async (agent?: Agent) =>
    await new Promise<number | null>((resolve) => {
      const headers = { authorization: `Bearer ${key}` }
      const asked = request({ hostname, port, path: '/v1/units', headers, ...(agent ? { agent } : {}) })
      asked.once('response', (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? 0)))
      asked.once('error', () => resolve(null))
      asked.end()
    })
  const open = async () => (await readdir(`/proc/${server.pid}/fd`)).length

  try {
    expect(await ask(kept)).toBe(200)
    // Each sends enough not to be closed at once for its silence.
    for (let made = 0; made < 2 * DESCRIPTORS; made += 1) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {}).once('close', () => crowd.delete(socket))
      socket.write('GET /v1/units HTTP/1.1\r\nhost: ')
      crowd.add(socket)
    }
    await expect.poll(open, { timeout: 20_000 }).toBeGreaterThanOrEqual(DESCRIPTORS - 2)
    expect([200, 503]).toContain(await ask(kept))
    expect([null, 200, 503]).toContain(await ask())
    for (const socket of crowd) socket.destroy()
    await expect.poll(async () => await ask(), { timeout: 20_000 }).toBe(200)
    expect(await open()).toBeLessThan(DESCRIPTORS)
    expect(await ask(kept)).toBe(200)
  } finally {
    for (const socket of crowd) socket.destroy()
    kept.destroy()
    await server.stop()
    await db.destroy()
    await database.drop()
  }
})
