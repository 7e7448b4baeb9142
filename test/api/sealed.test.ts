// Reliability S28 over HTTP: an encrypted value can be decrypted for its own team, owner and name only, so moving
// rows in the database reveals no secret of others.

import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import type { Database } from '../../src/store/db.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let db: Kysely<Database>
let team: TestTeam
let victim: TestTeam

beforeAll(async () => {
  service = await startService()
  db = service.app.db
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
  victim = await makeTeam(service)
})

const CANARY = 'canary-of-another'

async function create({ key }: TestTeam, name: string, value: string, rest: object = {}): Promise<Unit> {
  const spec = {
    name,
    image: 'node:22',
    ports: [80],
    env: { TOKEN: { secret: 'TOKEN', value }, OTHER: { secret: 'OTHER', value: 'plain enough' } },
    files: { '/etc/secret': value },
  }
  const { body } = await service.call<{ units: Unit[] }>('POST', '/v1/units', {
    key,
    body: { spec, ...rest },
  })
  const [unit] = body.units ?? []
  if (!unit) throw new Error(JSON.stringify(body))
  return unit
}

async function restart(id: string): Promise<{ status: number; shown: string }> {
  const path = `/v1/units/${id}`
  expect((await service.call('POST', `${path}/stop`, { key: team.key })).status).toBe(200)
  const { status, body } = await service.call('POST', `${path}/start`, { key: team.key })
  return { status, shown: JSON.stringify(body) }
}

/** A unit of another team, and one of the same team: values of neither can be moved. */
const owners = [
  ['of another team', () => victim],
  ['of the same team', () => team],
] as const

describe('an encrypted value that was moved from a unit', () => {
  it.each(owners)('%s (a secret) makes the start fail, and is in no answer', async (_whose, owner) => {
    const from = await create(owner(), 'from', CANARY)
    const to = await create(team, 'to', 'its own')
    await sql`
      update secrets set sealed = other.sealed from secrets other
      where secrets.owner_id = ${to.id} and other.owner_id = ${from.id} and secrets.name = other.name
    `.execute(db)
    await refused(to.id)
  })

  it.each(owners)('%s (a boot file) makes the start fail, and is in no answer', async (_whose, owner) => {
    const from = await create(owner(), 'from', CANARY)
    const to = await create(team, 'to', 'its own')
    await sql`
      update boot_files set sealed = other.sealed from boot_files other
      where boot_files.unit_id = ${to.id} and other.unit_id = ${from.id}
    `.execute(db)
    await refused(to.id)
  })

  it.each(owners)('%s (a private link) is not shown', async (_whose, owner) => {
    const from = await create(owner(), 'from', 'x', { expose: 'private' })
    const to = await create(team, 'to', 'x', { expose: 'private' })
    const secret = new URL(from.endpoints[0]?.url ?? '').hostname.split('.')[0] ?? ''
    await sql`
      update endpoints set sealed_secret = other.sealed_secret from endpoints other
      where endpoints.unit_id = ${to.id} and other.unit_id = ${from.id}
    `.execute(db)
    const { status, body } = await service.call('GET', `/v1/units/${to.id}`, { key: team.key })
    expect(status).toBe(500)
    expect(JSON.stringify(body)).not.toContain(secret.split('-').at(-1))
  })

  async function refused(id: string): Promise<void> {
    const { status, shown } = await restart(id)
    expect(status).toBeGreaterThanOrEqual(500)
    expect(shown).not.toContain(CANARY)
    const { body } = await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })
    expect(body.state).toBe('stopped')
    expect(JSON.stringify(body)).not.toContain(CANARY)
    expect(service.logged.join('')).not.toContain(CANARY)
  }
})

it('a secret that was moved to another name of the same unit cannot be decrypted', async () => {
  const { id } = await create(team, 'web', CANARY)
  await sql`
    update secrets set sealed = other.sealed from secrets other
    where secrets.owner_id = ${id} and other.owner_id = ${id} and secrets.name = 'OTHER' and other.name = 'TOKEN'
  `.execute(db)
  const { status, shown } = await restart(id)
  expect(status).toBeGreaterThanOrEqual(500)
  expect(shown).not.toContain(CANARY)
})
