// GET /v1/usage by agent, stack and unit, and what an agent has spent today.

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Usage, UsagePart } from '../../src/contract/usage.ts'
import { DAY, HOUR } from '../../src/lib/clock.ts'
import { makeKey, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let other: { id: string; secret: string }
let units: Unit[]

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  other = await makeKey(service, team)
  units = []
  for (let number = 0; number < 12; number += 1) {
    const key = number === 0 ? other.secret : team.key
    units.push(
      await makeUnit(service, { key }, { name: `unit-${number}`, size: number === 1 ? 'medium' : 'nano' }),
    )
  }
  // As if the units had run since before yesterday’s midnight.
  const began = new Date(Date.now() - DAY - HOUR)
  await service.app.db
    .updateTable('meters')
    .set({ started_at: began, billed_to: began })
    .where('team_id', '=', team.teamId)
    .execute()
  await service.call('POST', `/v1/units/${units[2]?.id}/stop`, { key: team.key })
}, 120_000)
afterAll(async () => await service.close())

const usage = async (by?: UsagePart) =>
  (
    await service.call<Usage>('GET', `/v1/usage?days=3${by === undefined ? '' : `&by=${by}`}`, {
      key: team.key,
    })
  ).body

test('the usage of each day is the sum of its parts and the rest, by agent, stack or unit', async () => {
  for (const by of ['agent', 'stack', 'unit'] as const) {
    const { days } = await usage(by)
    for (const { costCents, parts = [], restCents = 0 } of days)
      expect(parts.reduce((sum, part) => sum + part.costCents, restCents)).toBeCloseTo(costCents, 2)
    expect(days.flatMap(({ parts = [] }) => parts).length).toBeGreaterThan(0)
  }
})

test('the ten largest parts of a usage are listed by name, and all others as the rest', async () => {
  const yesterday = (await usage('unit')).days.at(-2)
  expect(yesterday?.parts).toHaveLength(10)
  expect(yesterday?.parts?.[0]).toMatchObject({ id: units[1]?.id, name: 'unit-1/unit-1' })
  expect(yesterday?.restCents).toBeGreaterThan(0)
  const [first, second] = (await usage('agent')).days.at(-2)?.parts ?? []
  expect([first?.id, second?.id]).toEqual([team.keyId, other.id])
})

test('the usage without a grouping has no parts', async () => {
  for (const day of (await usage()).days)
    expect(Object.keys(day)).toEqual(['date', 'costCents', 'unitSeconds'])
  const { status } = await service.call('GET', '/v1/usage?by=team', { key: team.key })
  expect(status).toBe(400)
})

test('an agent shows its spending of today and its number of running units', async () => {
  const { agents } = (await service.call<AgentList>('GET', '/v1/agents', { key: team.key })).body
  const mine = (id: string) => agents.find((agent) => agent.id === id)
  expect(mine(other.id)?.liveUnits).toBe(1)
  expect(mine(team.keyId)?.liveUnits).toBe(10)
  const today = (await usage('agent')).days.at(-1)?.parts ?? []
  for (const { id, costCents } of today) expect(mine(id)?.spentTodayCents).toBeCloseTo(costCents, 1)
})
