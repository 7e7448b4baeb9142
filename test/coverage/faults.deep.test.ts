// Reliability S29: a fault of the server at any statement tells its caller only that it is one, and the request id
// for the operator. Tries every route, with one table after another out of reach.

import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routes } from '../../src/api/routes.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const tables = ['units', 'stacks', 'teams', 'credentials', 'memberships', 'audit', 'endpoints']

/** Details of the database, the program, the host or another row. */
const INSIDE =
  /relation|column|constraint|kysely|node_modules|\.ts\b|\/(?:var|tmp|root|home|usr)\/|\bat \S+ \(|\b10\.\d+\.\d+\./i

let service: Service
let team: TestTeam
let cookie: string
let unitId: string

beforeAll(async () => {
  service = await startService({ loops: false })
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  unitId = (await makeUnit(service, team)).id
})
afterAll(async () => await service.close())

const bodies: Record<string, unknown> = {
  'POST /v1/units': { spec: { name: 'web', image: 'node:22' }, wait: false },
  'POST /v1/stacks': { name: 'shop' },
  'POST /v1/keys': { name: 'key' },
  'POST /v1/units/{id}/exec': { cmd: ['true'] },
  'POST /v1/units/{id}/processes': { cmd: ['true'] },
  'POST /v1/units/{id}/sleep': { sleep: '5m' },
}

describe.each(tables)('when the table %s is missing', (table) => {
  beforeAll(async () => {
    await sql`alter table ${sql.table(table)} rename to out_of_reach`.execute(service.app.db)
  })
  afterAll(async () => {
    await sql`alter table out_of_reach rename to ${sql.table(table)}`.execute(service.app.db)
  })

  test('every call is answered with the error envelope, and reveals no internal detail', async () => {
    let faults = 0
    for (const { method, path } of routes) {
      const isOfPeople = /^\/v1\/(?:keys|agents|me|teams|invites)/.test(path)
      const response = await service.fetch(method, path.replace(/\{\w+\}/g, unitId), {
        ...(isOfPeople ? { cookie } : { key: team.key }),
        headers: { origin: 'http://berth.test' },
        ...(method === 'GET' || method === 'DELETE' ? {} : { body: bodies[`${method} ${path}`] ?? {} }),
      })
      if (response.status < 400) {
        await response.body?.cancel()
        continue
      }
      const text = await response.text()
      const named = `${method} ${path} without ${table}`
      expect([named, INSIDE.exec(text)?.[0]]).toEqual([named, undefined])
      const { error } = JSON.parse(text) as { error: { code: string; requestId: string } }
      expect([named, error.requestId]).toEqual([named, response.headers.get('x-request-id')])
      if (response.status !== 500) continue
      faults += 1
      expect([named, Object.keys(error).toSorted(), error.code]).toEqual([
        named,
        ['code', 'message', 'requestId'],
        'internal',
      ])
    }
    expect(faults).toBeGreaterThan(0)
  })
})
