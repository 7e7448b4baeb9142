// POST /v1/units/{id}/expose and `expose` on create over HTTP (spec 2.4, 4.2).

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Exposed } from '../../src/contract/endpoint.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

type Refused = { error: { code: string; message: string; details: unknown } }
const expose = async (id: string, body: unknown, key = team.key) =>
  await service.call<Exposed & Refused>('POST', `/v1/units/${id}/expose`, { key, body })
const auditOf = async (headers: Headers) =>
  await service.app.db
    .selectFrom('audit')
    .selectAll()
    .where('request_id', '=', headers.get('x-request-id') ?? '')
    .execute()
const textOf = (rows: unknown) =>
  JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
/** The part of a private URL that grants access. */
const secretIn = (url: string) => new URL(url).hostname.split('.')[0]?.slice(-26) ?? ''

describe('POST /v1/units/{id}/expose', () => {
  it('returns the URL, which every answer about the unit shows from then on', async () => {
    const unit = await makeUnit(service, team)
    const { status, body } = await expose(unit.id, { port: 8080, mode: 'public' })
    expect(status).toBe(200)
    expect(Object.keys(body).toSorted()).toEqual(['mode', 'port', 'url'])
    const one = await service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })
    const all = await service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })
    for (const shown of [one.body, all.body.units.find(({ id }) => id === unit.id)]) {
      expect(shown?.endpoints).toMatchObject([
        { port: 8080, protocol: 'http', mode: 'public', url: body.url },
      ])
    }
  })

  it.each([
    [{}, 'port'],
    [{ port: 0 }, 'port'],
    [{ port: 65536 }, 'port'],
    [{ port: '8080' }, 'port'],
    [{ port: 8080, mode: 'secret' }, 'mode'],
    [{ port: 8080, rotate: 'yes' }, 'rotate'],
    [{ port: 8080, protocol: 'ftp' }, 'protocol'],
    [{ port: 8080, label: 'mine' }, 'the fields here are port, mode, rotate, protocol'],
    [{ port: 80 }, 'must be a port that the unit declares: 8080'],
  ])('refuses %j with a reason', async (body, message) => {
    const unit = await makeUnit(service, team, { ports: [8080] })
    const answer = await expose(unit.id, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({ code: 'validation' })
    expect(answer.body.error.message).toContain(message)
  })

  it('is refused for a unit of another team, and for an unknown one', async () => {
    const unit = await makeUnit(service, team)
    const other = await makeTeam(service)
    expect((await expose(unit.id, { port: 80 }, other.key)).status).toBe(403)
    expect((await expose('unit_nowhere', { port: 80 })).status).toBe(404)
  })

  it('leaves one audit row with the request, and neither logs nor stores the secret in plain', async () => {
    const unit = await makeUnit(service, team)
    const { body, headers } = await expose(unit.id, { port: 8080, rotate: true })
    expect(await auditOf(headers)).toMatchObject([
      { action: 'unit.expose', target: unit.id, status: 200, input: { port: 8080, rotate: true } },
    ])
    const secret = secretIn(body.url)
    expect(secret).toMatch(/^[a-z2-7]{26}$/)
    expect(service.logged.join('')).not.toContain(secret)
    const rows = await service.app.db.selectFrom('audit').selectAll().execute()
    expect(textOf(rows)).not.toContain(secret)
    const kept = await service.app.db.selectFrom('endpoints').selectAll().execute()
    for (const row of kept) expect(row.sealed_secret?.includes(secret) ?? false).toBe(false)
  })
})

describe('a create with expose', () => {
  const create = async (headers: Record<string, string> = {}) =>
    await service.call<RunResult>('POST', '/v1/units', {
      key: team.key,
      body: { spec: { name: 'app', image: 'node:22', ports: [8080] }, expose: 'private' },
      headers,
    })

  it('returns the URL, and its audit row does not contain it', async () => {
    const { status, body, headers } = await create()
    expect(status).toBe(201)
    expect(body.outputs).toEqual({ URL: body.units[0]?.endpoints[0]?.url })
    const rows = await auditOf(headers)
    expect(rows).toMatchObject([{ action: 'unit.create', input: { expose: 'private' } }])
    expect(textOf(rows)).not.toContain(secretIn(body.outputs['URL'] ?? ''))
  })

  it('runs once for an Idempotency-Key, and returns the same URL again', async () => {
    const key = { 'idempotency-key': 'publish-once' }
    const first = await create(key)
    const again = await create(key)
    expect(again.body.outputs).toEqual(first.body.outputs)
    expect(again.body.units[0]?.id).toBe(first.body.units[0]?.id)
  })
})
