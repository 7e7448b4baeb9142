// POST /v1/units/{id}/sleep over HTTP (spec 2.6, 4.2, 7), and many units that are due at once.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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

const sleep = async (id: string, body: unknown, key = team.key) =>
  await service.call<{ units: Unit[]; error: { code: string; message: string } }>(
    'POST',
    `/v1/units/${id}/sleep`,
    { key, body },
  )
const get = async (id: string) => (await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })).body

describe('the sleep call', () => {
  it('returns the units whose window it set', async () => {
    const unit = await makeUnit(service, team)
    const { status, body } = await sleep(unit.id, { sleep: '45m' })
    expect(status).toBe(200)
    expect(body.units).toMatchObject([{ id: unit.id, state: 'running', sleep: '45m' }])
    const window = Date.parse(body.units[0]?.sleepsAt ?? '') - Date.parse(unit.lastUsedAt ?? '')
    expect(window).toBe(45 * 60_000)
  })

  it.each([
    [{ sleep: 30 }, 'sleep: must be a string such as "30m", not the number 30'],
    [{ sleep: '30' }, 'sleep: must be "never", or a number followed by m, h or d'],
    [{ sleep: '0m' }, 'sleep: must be'],
    [{ sleep: '100000m' }, 'sleep: must be'],
    [{}, 'sleep: must be'],
    [{ sleep: '1h', stack: 'yes' }, 'stack'],
    [{ sleep: '1h', at: 'once' }, 'the fields here are sleep, stack, now'],
  ])('refuses %j and says what to send', async (body, message) => {
    const unit = await makeUnit(service, team)
    const answer = await sleep(unit.id, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({ code: 'validation' })
    expect(answer.body.error.message).toContain(message)
    expect((await get(unit.id)).sleep).toBe(unit.sleep)
  })

  it('is refused for a unit of another team, and for an unknown one', async () => {
    const unit = await makeUnit(service, team)
    const other = await makeTeam(service)
    expect((await sleep(unit.id, { sleep: '1h' }, other.key)).status).toBe(403)
    expect((await sleep('unit_nowhere', { sleep: '1h' })).status).toBe(404)
  })

  it('puts a unit to sleep, and a command wakes it', async () => {
    const unit = await makeUnit(service, team)
    const { body } = await sleep(unit.id, { sleep: '30m', now: true })
    expect(body.units).toMatchObject([{ state: 'sleeping', stoppedReason: 'idle', sleepsAt: null }])
    const exec = await service.call<{ stdout: string }>('POST', `/v1/units/${unit.id}/exec`, {
      key: team.key,
      body: { cmd: ['echo', 'good morning'] },
    })
    expect(exec.body.stdout).toBe('good morning\n')
    expect(await get(unit.id)).toMatchObject({ state: 'running', stoppedReason: null })
  })

  it('leaves one audit row with the request', async () => {
    const unit = await makeUnit(service, team)
    const { headers } = await sleep(unit.id, { sleep: '30m', stack: true })
    const rows = await service.app.db
      .selectFrom('audit')
      .selectAll()
      .where('request_id', '=', headers.get('x-request-id') ?? '')
      .execute()
    expect(rows).toMatchObject([
      {
        action: 'unit.sleep',
        target: unit.id,
        input: { sleep: '30m', stack: true, now: false },
        status: 200,
      },
    ])
  })
})

it('two hundred units that are due fall asleep, and one that is not due does not', async () => {
  const { key } = team
  const spec = { name: 'one', image: 'node:22', sleep: '1m' }
  const made = async (stack: string, index: number) =>
    await service.call<{ units: Unit[] }>('POST', '/v1/units', {
      key,
      body: { spec: { ...spec, name: `unit-${index}` }, stack },
    })
  for (let from = 0; from < 200; from += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => made('due', from + index)))
  }
  const awake = await makeUnit(service, team, { sleep: '1h' })
  service.clock.advance(61_000)
  const asleep = async () => {
    const { body } = await service.call<{ units: Unit[] }>('GET', '/v1/units?stack=due&limit=500', { key })
    return body.units.filter(({ state }) => state === 'sleeping').length
  }
  await expect.poll(asleep, { timeout: 20_000 }).toBe(200)
  expect((await get(awake.id)).state).toBe('running')
}, 60_000)
