// Three hosts and thirty teams that come at once: the server's own host, and two that have joined. Then each call of the API
// for each of the ninety units.

import { beforeAll, describe, expect, it } from 'vitest'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { allSettled } from '../../src/lib/concurrency/all-settled.ts'
import { createSemaphore } from '../../src/lib/concurrency/semaphore.ts'
import { freePort } from '../../src/lib/free-port.ts'
import { eventually } from '../support/berth.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { hosts, joinAs, useMachine } from '../support/host-lab.ts'
import { makeTeam } from '../support/make.ts'
import { callAs, type Owner, stackCalls, unitCalls } from '../support/unit-calls.ts'
import { useBerth } from '../support/use-berth.ts'

const TEAMS = 30
const NAMES = ['web', 'api', 'db']
/** Two processors do not go faster for more. */
const AT_ONCE = 6

/** By what they are called with. */
const calls = unitCalls.map(({ routes: called, call }) => ({ what: called.join(', '), call }))

type Team = { owner: Owner; units: Unit[] }

describe('three hosts', () => {
  const settings = { BERTH_HOSTS_ADDRESS: '', BERTH_ISOLATION: 'runc' }
  beforeAll(async () => {
    settings.BERTH_HOSTS_ADDRESS = `0.0.0.0:${await freePort('0.0.0.0')}`
  })
  const berth = useBerth(() => settings)
  const east = useMachine('east', 20, { BERTH_ISOLATION: 'runc', BERTH_DOMAIN: 'east.berth.localhost' })
  const west = useMachine('west', 21, { BERTH_ISOLATION: 'runc', BERTH_DOMAIN: 'west.berth.localhost' })
  const teams: Team[] = []
  const unitsOfAll = () => teams.flatMap(({ owner, units }) => units.map((unit) => ({ owner, unit })))

  it('take the units of teams that come at once: each team is on one host, and each host has some', async () => {
    for (const machine of [east, west]) await joinAs(berth, settings, machine)
    await eventually(async () => {
      expect(await hosts(berth, settings, 'list')).toMatch(/east +ready [^]*west +ready /)
    }, 30_000)
    const keys = await withDatabase(await berth.instance(), async (db) => {
      const made = []
      for (let team = 0; team < TEAMS; team += 1)
        made.push(await makeTeam({ app: { db, clock: systemClock } }))
      return made.map(({ key }) => key)
    })
    const made = await Promise.all(
      keys.map(async (key, team) => {
        const owner = { berth, key }
        // Every other team has a stack of three, the others three stacks of one.
        if (team % 2 === 0)
          expect((await callAs(owner, 'POST', '/v1/stacks', { name: 'shop' })).status).toBe(201)
        const units = NAMES.map(async (name) => await create(owner, name, team % 2 === 0 ? 'shop' : name))
        return { owner, units: await Promise.all(units) }
      }),
    )
    teams.push(...made)
    for (const { units } of teams) expect(new Set(units.map(({ host }) => host.id)).size).toBe(1)
    const used = new Map<string, number>()
    for (const { units } of teams)
      for (const { host } of units) used.set(host.id, (used.get(host.id) ?? 0) + 1)
    expect(used.size).toBe(3)
  })

  it.each(calls)('answer $what for each unit', async ({ call }) => {
    await onEach(unitsOfAll(), async ({ owner, unit }) => await call(owner, unit))
  })

  it('answer calls for stacks, whose copies are on the host of their sources', async () => {
    const withStacks = teams.filter((_, team) => team % 2 === 0)
    await onEach(withStacks, async ({ owner, units }) => {
      await stackCalls.call(owner, units[0]?.stackId ?? '')
    })
  })

  it('have nothing of units that are destroyed', async () => {
    await onEach(unitsOfAll(), async ({ owner, unit }) => {
      expect((await callAs(owner, 'DELETE', `/v1/units/${unit.id}`)).status).toBe(200)
    })
    for (const each of [berth, east.berth, west.berth])
      await eventually(async () => {
        const left = Object.values(await each.hostState()).flat()
        expect(left.filter((line) => line.includes('unit_'))).toEqual([])
      })
  })
})

async function onEach<T>(all: T[], work: (each: T) => Promise<void>): Promise<void> {
  const oneOfFew = createSemaphore(AT_ONCE)
  await allSettled(all.map(async (each) => await oneOfFew(async () => await work(each))))
}

async function create(owner: Owner, name: string, stack: string): Promise<Unit> {
  const cmd = ['sh', '-c', `echo begun ${name}; exec sleep infinity`]
  const spec = { name, image: 'berth.local/debian:12', size: 'nano', cmd }
  const { status, body } = await callAs<RunResult>(owner, 'POST', '/v1/units', {
    spec,
    stack,
    waitTimeoutMs: 300_000,
  })
  expect(status, JSON.stringify(body)).toBe(201)
  const [unit] = body.units
  expect(unit).toMatchObject({ state: 'running' })
  if (!unit) throw new Error('a create answered no unit')
  return unit
}
