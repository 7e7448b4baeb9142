// Z1, stateful: random sequences of calls are compared with a model of a unit.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Model = { units: { name: string; state: 'running' | 'sleeping' | 'stopped' | 'destroyed' }[] }
type Real = { ids: string[]; team: TestTeam }

let service: Service

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())

const call = ({ team }: Real, method: string, path: string, body?: unknown) =>
  service.call<Unit & { units: Unit[] }>(method, path, { key: team.key, body })

/** Returns whether a call that needs the machine is answered, and wakes a sleeping unit in the model. */
function isUsable(unit: Model['units'][number]): boolean {
  if (unit.state === 'sleeping') unit.state = 'running'
  return unit.state === 'running'
}

/** A command on the n-th unit, if there is one. */
function onUnit(
  title: string,
  act: (real: Real, id: string, unit: Model['units'][number], model: Model) => Promise<void>,
): fc.Arbitrary<fc.AsyncCommand<Model, Real>> {
  return fc.nat(5).map((n) => ({
    check: ({ units }) => units.length > 0,
    run: async (model, real) => {
      const index = n % model.units.length
      const unit = model.units[index]
      const id = real.ids[index]
      if (unit && id !== undefined) await act(real, id, unit, model)
    },
    toString: () => `${title}(${n})`,
  }))
}

const create: fc.Arbitrary<fc.AsyncCommand<Model, Real>> = fc.constantFrom('a', 'b', 'c').map((name) => ({
  check: () => true,
  run: async (model, real) => {
    const taken = model.units.some((unit) => unit.name === name && unit.state !== 'destroyed')
    const { status, body } = await call(real, 'POST', '/v1/units', {
      spec: { name, image: 'node:22' },
      stack: 'one',
    })
    expect(status).toBe(taken ? 409 : 201)
    if (taken) return
    real.ids.push(body.units[0]?.id ?? '')
    model.units.push({ name, state: 'running' })
  },
  toString: () => `create(${name})`,
}))

const commands = [
  create,
  onUnit('get', async (real, id, unit) => {
    expect(await call(real, 'GET', `/v1/units/${id}`)).toMatchObject({ status: 200, body: unit })
  }),
  onUnit('exec', async (real, id, unit) => {
    const { status } = await call(real, 'POST', `/v1/units/${id}/exec`, { cmd: ['true'] })
    expect(status).toBe(isUsable(unit) ? 200 : 409)
  }),
  onUnit('write', async (real, id, unit) => {
    const { status } = await call(real, 'PUT', `/v1/units/${id}/files?path=/f`, 'x')
    expect(status).toBe(isUsable(unit) ? 200 : 409)
  }),
  onUnit('sleep', async (real, id, unit) => {
    const { status } = await call(real, 'POST', `/v1/units/${id}/sleep`, { sleep: '30m', now: true })
    const isUp = unit.state === 'running' || unit.state === 'sleeping'
    expect(status).toBe(isUp ? 200 : 409)
    if (isUp) unit.state = 'sleeping'
  }),
  onUnit('stop', async (real, id, unit) => {
    const { status } = await call(real, 'POST', `/v1/units/${id}/stop`)
    expect(status).toBe(unit.state === 'destroyed' ? 409 : 200)
    if (unit.state !== 'destroyed') unit.state = 'stopped'
  }),
  onUnit('start', async (real, id, unit) => {
    const { status } = await call(real, 'POST', `/v1/units/${id}/start`)
    expect(status).toBe(unit.state === 'destroyed' ? 409 : 200)
    if (unit.state !== 'destroyed') unit.state = 'running'
  }),
  onUnit('fork', async (real, id, unit, model) => {
    const { status, body } = await call(real, 'POST', `/v1/units/${id}/fork`, {})
    expect(status).toBe(unit.state === 'destroyed' ? 409 : 201)
    for (const copy of body.units ?? []) {
      real.ids.push(copy.id)
      model.units.push({ name: copy.name, state: unit.state })
    }
  }),
  onUnit('destroy', async (real, id, unit) => {
    const { status, body } = await call(real, 'DELETE', `/v1/units/${id}`)
    expect(status).toBe(200)
    expect(body.state).toBe('destroyed')
    unit.state = 'destroyed'
  }),
  fc.constant<fc.AsyncCommand<Model, Real>>({
    check: () => true,
    run: async ({ units }, real) => {
      const live = units.filter(({ state }) => state !== 'destroyed')
      const listed = (await call(real, 'GET', '/v1/units')).body.units
      expect(listed.map(({ name, state }) => ({ name, state })).reverse()).toEqual(live)
      expect((await call(real, 'GET', '/v1/units?all=true')).body.units).toHaveLength(units.length)
    },
    toString: () => 'list',
  }),
]

test('a unit is in the state of the model after any sequence of calls', async () => {
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 25 }), async (sequence) => {
      const team = await makeTeam(service)
      await fc.asyncModelRun(() => ({ model: { units: [] }, real: { ids: [], team } }), sequence)
    }),
    { numRuns: 25 },
  )
  const faults = service.logged.filter((line) => line.includes('"level":50'))
  expect(faults).toEqual([])
}, 60_000)
