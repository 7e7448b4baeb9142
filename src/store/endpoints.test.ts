// Which columns of endpoints and units the gateway’s database role can read, and that they suffice for routing.

import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createBody, createTestDomain, type TestDomain } from '../../test/support/domain.ts'
import { hashEndpointSecret, parseEndpointLabel } from '../contract/endpoint-label.ts'
import { createUnits } from '../domain/units/create.ts'
import { destroyUnit } from '../domain/units/destroy.ts'
import { silentLog } from '../lib/log.ts'
import { postgresUrl } from '../supervisor/postgres.ts'
import { type Database, openDatabase } from './db.ts'
import { findEndpointRoutes } from './endpoints.ts'

let domain: TestDomain
/** The same database with the gateway’s role. */
let db: Kysely<Database>

beforeAll(async () => {
  domain = await createTestDomain()
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(domain.app.db)
  db = openDatabase(postgresUrl(inject('postgresSocketDir'), 'berth_gateway', rows[0]?.name), silentLog)
})
afterAll(async () => {
  await db.destroy()
  await domain.close()
})

async function publish(mode: 'public' | 'private') {
  const caller = await domain.makeCaller()
  const body = createBody({ name: 'shop', ports: [8080] }, { expose: mode })
  const { units, outputs } = await createUnits(domain.app, caller, body)
  const label = parseEndpointLabel(new URL(outputs['URL'] ?? '').hostname.split('.')[0] ?? '')
  const [unit] = units
  if (!unit || !label) throw new Error('a unit was published')
  return { caller, unit, label }
}

describe('the route of an endpoint', () => {
  it('has the run of its unit and the hash of its secret', async () => {
    const { unit, label } = await publish('private')
    const other = await publish('public')
    const address = domain.engine.machines().find(({ id }) => id === unit.id)?.address
    expect(await findEndpointRoutes(db, [label.name, 'shop-aaaaaaaaaa'])).toEqual([
      {
        endpointId: unit.endpoints[0]?.id,
        name: label.name,
        unitId: unit.id,
        protocol: 'http',
        secretHash: hashEndpointSecret(label.secret ?? ''),
        port: 8080,
        address,
        state: 'running',
        stoppedReason: null,
        frozen: false,
        generation: 1,
        hostId: unit.host.id,
      },
    ])
    const names = [label.name, other.label.name]
    const both = await findEndpointRoutes(db, names)
    expect(both.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
    expect(both.find(({ name }) => name === other.label.name)?.secretHash).toBeNull()
  })

  it('is gone once its unit is destroyed', async () => {
    const { caller, unit, label } = await publish('public')
    await destroyUnit(domain.app, caller, unit.id)
    expect(await findEndpointRoutes(db, [label.name])).toEqual([])
  })
})

describe('the gateway’s database role', () => {
  it.each([
    'select sealed_secret from endpoints',
    'select team_id from endpoints',
    'update endpoints set retired_at = null',
    'insert into endpoints (id) values (null)',
    'delete from endpoints',
    'select spec from units',
    'update units set state = state',
    'select 1 from secrets',
    'select 1 from boot_files',
    'select 1 from credentials',
  ])('is denied: %s', async (statement) => {
    await expect(sql.raw(statement).execute(db)).rejects.toThrow(/permission denied/)
  })
})
