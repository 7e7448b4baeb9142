// POST /v1/units/{id}/calls: what programs tell of the calls that they pass on stands in the audit log, masked as that of exec is.

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AuditEvent } from '../../src/contract/audit.ts'
import { whatOf } from '../../src/contract/audit-sentences.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

const tell = async (calls: object[], { key = team.key, id = unit.id } = {}) =>
  await service.call<{ error?: { code: string } }>('POST', `/v1/units/${id}/calls`, { key, body: { calls } })
const rows = async () =>
  (
    await service.call<{ events: AuditEvent[] }>('GET', `/v1/audit?action=unit.calls&target=${unit.id}`, {
      key: team.key,
    })
  ).body.events

it('is one row of the unit with each call, its session and its command, in which passwords are masked', async () => {
  const cmd = ['/bin/bash', '-lc', 'curl -u me:hidden-value https://user:hidden-value@example.com']
  const session = '01a22a22-fc67'
  const calls = [
    { method: 'process/start', cmd, session },
    { method: 'fs/readFile', path: '/workspace/a', count: 3 },
  ]
  expect(await tell(calls)).toMatchObject({ status: 200, body: { ok: true } })
  const [row, ...others] = await rows()
  expect(others).toEqual([])
  expect(row).toMatchObject({ action: 'unit.calls', target: unit.id, status: 200 })
  const [first, second] = (row?.input?.['calls'] ?? []) as { cmd?: string[] }[]
  expect(first).toMatchObject({ method: 'process/start', count: 1, session })
  expect(first?.cmd?.[2]).toMatch(/^curl -u me:\*\*\* https:\/\/user:\*\*\*@example.com$/)
  expect(second).toEqual(calls[1])
  expect(JSON.stringify(row)).not.toContain('hidden-value')
  expect(row && whatOf(row)).toContain('called by a port of its own')
})

it('without a command says which methods were called', async () => {
  await tell([{ method: 'initialize' }, { method: 'fs/getMetadata', count: 4 }])
  const [row] = await rows()
  expect(row && whatOf(row)).toBe(`called by a port of its own ${unit.name} initialize, fs/getMetadata ×4`)
})

it('wakes nothing', async () => {
  await service.call('POST', `/v1/units/${unit.id}/sleep`, {
    key: team.key,
    body: { sleep: '1m', now: true },
  })
  const state = async () =>
    (await service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })).body.state
  await expect.poll(state).toBe('sleeping')
  expect((await tell([{ method: 'x' }])).status).toBe(200)
  expect(await state()).toBe('sleeping')
})

it('is refused for units of others, and for what is no call', async () => {
  const { key } = await makeTeam(service)
  expect((await tell([{ method: 'x' }], { key })).status).toBe(403)
  for (const calls of [[], [{ method: 'a b' }], [{ method: 'x', count: 0 }], [{ method: 'x', cmd: [] }]])
    expect((await tell(calls)).body.error?.code).toBe('validation')
  expect((await tell(Array.from({ length: 41 }, () => ({ method: 'x' })))).status).toBe(400)
})
