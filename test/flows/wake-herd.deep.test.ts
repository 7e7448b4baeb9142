// Five hundred calls within 100 ms reach a stack that sleeps or is falling asleep (reliability L1). Each unit wakes once, and
// every caller gets a success or is told to retry later.

import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { eventually } from '../support/berth.ts'
import { createUnit, destroyAll } from '../support/berth-units.ts'
import { arm } from '../support/failpoints.ts'
import { expectInvariants, withDatabase } from '../support/host-invariants.ts'
import { send } from '../support/patient-client.ts'
import { useBerth } from '../support/use-berth.ts'

const CALLS = 500
const WITHIN_MS = 100

const berth = useBerth(null)
let units: Unit[]

async function herd(): Promise<void> {
  const calls = Array.from({ length: CALLS }, async (_, index) => {
    await delay((index * WITHIN_MS) / CALLS)
    const unit = units[index % units.length]
    return await send(berth, { method: 'POST', path: `/v1/units/${unit?.id}/start` })
  })
  const outcomes = await Promise.all(calls)
  const told = outcomes.map((outcome) => {
    if (outcome.kind !== 'answered') return outcome.kind
    return outcome.status === 503 && outcome.retryAfterMs ? 'told when to come again' : outcome.status
  })
  for (const answer of new Set(told)) expect([200, 'told when to come again']).toContain(answer)
  expect(told).toContain(200)
}

/** Returns how often each unit has started, by its id. */
async function runsBegun(): Promise<Map<string, number>> {
  const rows = await withDatabase(await berth.instance(), (db) =>
    db.selectFrom('meters').select('unit_id').execute(),
  )
  return new Map(units.map(({ id }) => [id, rows.filter((row) => row.unit_id === id).length]))
}

const plusOne = (counts: Map<string, number>) => new Map([...counts].map(([id, count]) => [id, count + 1]))
const sleepStack = () =>
  send(berth, {
    method: 'POST',
    path: `/v1/units/${units[0]?.id}/sleep`,
    body: { sleep: '30m', stack: true, now: true },
  })
const states = async () => {
  const { body } = await berth.call<{ units: Unit[] }>('GET', '/v1/units')
  return body.units.map(({ state }) => state)
}

describe.each([
  { tier: 'frozen', frozenFor: 'never' },
  { tier: 'cold', frozenFor: '0s' },
])('a stack that sleeps $tier', ({ frozenFor }) => {
  beforeAll(async () => {
    const env = { BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: frozenFor, BERTH_FAILPOINTS: 'on' }
    await berth.start(env)
    const spec = { image: 'berth.local/debian:12', size: 'nano' }
    const names = ['db', 'app', 'web']
    units = await Promise.all(names.map((name) => createUnit(berth, { ...spec, name }, `stack-${frozenFor}`)))
  })
  afterAll(() => destroyAll(berth))

  it('is woken once by five hundred concurrent calls', async () => {
    expect(await sleepStack()).toMatchObject({ kind: 'answered', status: 200 })
    expect(await states()).toEqual(['sleeping', 'sleeping', 'sleeping'])
    const before = await runsBegun()
    await herd()
    await eventually(async () => expect(await states()).toEqual(['running', 'running', 'running']))
    expect(await runsBegun()).toEqual(plusOne(before))
    await expectInvariants(berth)
  })

  it('is woken once by five hundred concurrent calls while it is falling asleep', async () => {
    const before = await runsBegun()
    await arm(berth, 'server', 'sleep.freeze.before', 'delay')
    const falling = sleepStack()
    await eventually(async () => expect(await states()).toContain('stopping'))
    await herd()
    expect(await falling).toMatchObject({ kind: 'answered', status: 200 })
    await eventually(async () => expect(await states()).toEqual(['running', 'running', 'running']))
    expect(await runsBegun()).toEqual(plusOne(before))
    await expectInvariants(berth)
  })
})
