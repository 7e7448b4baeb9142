// The port that a public TCP endpoint has to itself, for clients that send no SNI, over HTTP.

import { type Kysely, sql } from 'kysely'
import { afterEach, beforeEach, expect, inject, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type Database, openDatabase } from '../../src/store/db.ts'
import { findEndpointPorts } from '../../src/store/endpoint-ports.ts'
import { postgresUrl } from '../../src/supervisor/postgres.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const range = { first: 17_000, last: 17_003 }

let service: Service
let team: TestTeam
beforeEach(async () => await start(range))
afterEach(async () => await service.close())

async function start(gatewayPorts: typeof range | null): Promise<void> {
  service = await startService({ gatewayPorts })
  team = await makeTeam(service)
}

async function expose(id: string, body: Record<string, unknown>): Promise<void> {
  const sent = { port: 6379, protocol: 'redis', mode: 'public', ...body }
  const { status } = await service.call<Exposed>('POST', `/v1/units/${id}/expose`, {
    key: team.key,
    body: sent,
  })
  expect(status).toBe(200)
}

/** The port of the unit’s TCP endpoint, as answers show it. */
async function portOf(id: string): Promise<number | undefined> {
  const { body } = await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })
  return body.endpoints.find(({ protocol }) => protocol !== 'http')?.portWithoutSni
}

async function published(body: Record<string, unknown> = {}): Promise<string> {
  const { id } = await makeUnit(service, team)
  await expose(id, body)
  return id
}

it('a port without SNI is shown with its endpoint, and is unique also with concurrent requests', async () => {
  const ids = await Promise.all(Array.from({ length: 4 }, async () => await published()))
  const ports = await Promise.all(ids.map(portOf))
  expect(new Set(ports)).toEqual(new Set([17_000, 17_001, 17_002, 17_003]))
})

it('a port without SNI is given to a MySQL endpoint too, and never to a URL', async () => {
  expect(await portOf(await published({ port: 3306, protocol: 'mysql' }))).toBe(17_000)
  const { id } = await makeUnit(service, team)
  await expose(id, { port: 8080, protocol: 'http' })
  const { body } = await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })
  expect(body.endpoints[0]).not.toHaveProperty('portWithoutSni')
})

it('a port without SNI is kept as long as the endpoint has its name, also when its port changes', async () => {
  const id = await published()
  await expose(id, { port: 6380 })
  await expose(id, { port: 27_017, protocol: 'mongodb' })
  expect(await portOf(id)).toBe(17_000)
  await expose(id, { port: 27_017, protocol: 'mongodb', rotate: true })
  expect(await portOf(id)).toBe(17_001)
})

it('a port without SNI ends when the endpoint becomes private, and the database enforces that', async () => {
  const id = await published()
  await expose(id, { mode: 'private' })
  expect(await portOf(id)).toBeUndefined()
  const give = service.app.db
    .updateTable('endpoints')
    .set({ gateway_port: 17_003 })
    .where('unit_id', '=', id)
    .where('retired_at', 'is', null)
  await expect(give.execute()).rejects.toThrow(/check constraint/)
})

it('a port without SNI is reused once its unit is destroyed, the one unused for longest first', async () => {
  const first = await published()
  await service.call('DELETE', `/v1/units/${first}`, { key: team.key })
  for (const port of [17_001, 17_002, 17_003, 17_000]) expect(await portOf(await published())).toBe(port)
})

it('a port without SNI is missing when all are taken, and the endpoint is published without it', async () => {
  for (let made = 0; made < 4; made += 1) await published()
  expect(await portOf(await published())).toBeUndefined()
})

it('a port without SNI is not given without a range, and not shown when outside the range', async () => {
  const id = await published()
  service.app.config.gatewayPorts = { first: 18_000, last: 18_999 }
  expect(await portOf(id)).toBeUndefined()
  await service.close()
  await start(null)
  expect(await portOf(await published())).toBeUndefined()
})

it('a port without SNI is visible to the database role of the gateway while it is live', async () => {
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(service.app.db)
  const url = postgresUrl(inject('postgresSocketDir'), 'berth_gateway', rows[0]?.name)
  const db: Kysely<Database> = openDatabase(url, silentLog)
  const id = await published()
  const found = await findEndpointPorts(db, range)
  expect(found).toMatchObject([{ port: 17_000, protocol: 'redis' }])
  expect(await findEndpointPorts(db, { first: 18_000, last: 18_999 })).toEqual([])
  await expose(id, { mode: 'private' })
  expect(await findEndpointPorts(db, range)).toEqual([])
  await db.destroy()
})
