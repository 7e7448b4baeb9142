// The server is killed at every step of every way a unit can take, before and after the step's effect, while it
// works for callers on real machines (reliability F1). Each time the caller, who tries again as a sane one
// does, finds one unit, where it was sent, with its files; and the host is as the database says.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createWay } from '../../src/domain/units/create.ts'
import { destroyWay } from '../../src/domain/units/destroy.ts'
import { coolWay, sleepWay } from '../../src/domain/units/fall-asleep.ts'
import { startWay } from '../../src/domain/units/run.ts'
import { stopWay } from '../../src/domain/units/stop.ts'
import { thawWay } from '../../src/domain/units/wake.ts'
import { Berth, eventually, makeDataDir } from '../support/berth.ts'
import { createUnit, destroyAll, listUnits } from '../support/berth-units.ts'
import { arm, disarm, stillArmed } from '../support/failpoints.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { cleanHost } from '../support/host-state.ts'
import { killSupervisor } from '../support/kill.ts'
import { type Call, callPatiently, type Reply } from '../support/patient-client.ts'

type Saga = 'create' | 'start' | 'wake' | 'sleep' | 'cool' | 'stop' | 'destroy'

const ways = [createWay, startWay, thawWay, sleepWay, coolWay, stopWay, destroyWay]
/** All but undoing, which is apart. */
const everyPlace = ways.flatMap(({ saga }) => placesOf(saga.name, ...saga.steps.map(({ name }) => name)))

/** Where a crash, and what follows from it, must have ended. */
const WITHIN_MS = 60_000

/** A supervisor waits the longer the oftener a part has failed, so each of its lives has a few failures only. */
const lives: { isolation: 'runc' | 'gvisor'; frozenFor: string; from?: 'asleep'; places: string[] }[] = [
  { isolation: 'runc', frozenFor: 'never', places: placesOf('create', 'image', 'machine') },
  { isolation: 'runc', frozenFor: 'never', places: placesOf('create', 'start', 'ready') },
  {
    isolation: 'runc',
    frozenFor: 'never',
    places: [...placesOf('sleep', 'freeze'), ...placesOf('wake', 'thaw')],
  },
  {
    isolation: 'runc',
    frozenFor: 'never',
    places: [...placesOf('stop', 'stop'), ...placesOf('destroy', 'machine')],
  },
  { isolation: 'runc', frozenFor: 'never', places: placesOf('start', 'start', 'ready') },
  { isolation: 'runc', frozenFor: '0s', from: 'asleep', places: placesOf('start', 'start', 'ready') },
  { isolation: 'runc', frozenFor: '1s', places: placesOf('cool', 'stop') },
  {
    isolation: 'gvisor',
    frozenFor: 'never',
    places: ['create.machine.after', 'create.start.before', 'create.start.after', 'destroy.machine.before'],
  },
  {
    isolation: 'gvisor',
    frozenFor: 'never',
    places: ['sleep.freeze.before', 'wake.thaw.after', 'stop.stop.before', 'start.start.after'],
  },
]

function placesOf(saga: string, ...steps: string[]): string[] {
  return steps.flatMap((step) => [`${saga}.${step}.before`, `${saga}.${step}.after`])
}

let data: Awaited<ReturnType<typeof makeDataDir>>
/** The newest; none before the first. */
let berth: Berth
let made = 0

beforeAll(async () => {
  data = await makeDataDir()
})

afterAll(async () => {
  await destroyAll(berth)
  await expectInvariants(berth)
  expect(await berth.pressCtrlC()).toBe(0)
  await eventually(async () => expect(await berth.hostState()).toEqual(cleanHost))
  await data.remove()
})

/** The next life of Berth on the same data, begun by the sudden end of the one before. */
async function startAnew(env: Record<string, string>): Promise<void> {
  if (berth) await killSupervisor(berth)
  berth = await new Berth(data.path, { BERTH_FAILPOINTS: 'on', ...env }).ready()
}

it('every place a server can be killed at is met by a drill', () => {
  const drilled = lives.filter(({ isolation }) => isolation === 'runc').flatMap(({ places }) => places)
  expect([...new Set(drilled)].toSorted()).toEqual(everyPlace.toSorted())
})

describe.each(lives)(
  'in the class $isolation, where sleepers are frozen for $frozenFor,',
  ({ isolation, frozenFor, from, places }) => {
    let units: Unit[]

    beforeAll(async () => {
      await startAnew({ BERTH_ISOLATION: isolation, BERTH_FROZEN_FOR: frozenFor })
      // More than one: whoever does not run into the crash itself is met by it anywhere.
      units = await Promise.all([1, 2].map(makeMarked))
    })

    afterEach(() => disarm(berth))
    afterAll(() => destroyAll(berth))

    it.each(places)('a server killed at %s costs a caller time and nothing else', async (place) => {
      const saga = place.split('.')[0] as Saga
      const before = from === 'asleep' ? sleepNow : prepared[saga]
      await Promise.all(units.map(before))
      const server = await berth.pidOf('server')
      await arm(berth, 'server', place, 'crash')
      switch (saga) {
        case 'create':
          await expectOneEach([`new-${(made += 1)}`, `new-${(made += 1)}`])
          break
        case 'destroy':
          await expectGone(await Promise.all([1, 2].map(makeMarked)))
          break
        default:
          await Promise.all(units.map(sent[saga]))
          await eventually(async () => {
            for (const unit of units) expect(await get(unit)).toMatchObject(arrives[saga])
          }, WITHIN_MS)
      }
      await eventually(async () => expect(await stillArmed(berth)).toEqual([]), WITHIN_MS)
      await eventually(async () => expect(await berth.pidOf('server')).not.toBe(server))
      await expectInvariants(berth, WITHIN_MS)
      for (const unit of units) await expectFiles(unit)
    })
  },
)

describe('while what failed is undone', () => {
  beforeAll(() => startAnew({ BERTH_ISOLATION: 'runc' }))
  afterEach(() => disarm(berth))

  it.each(placesOf('create', 'start.undo', 'machine.undo'))(
    'a server killed at %s leaves a unit in error, and nothing of it on the host',
    async (place) => {
      await arm(berth, 'server', 'create.ready.before', 'error')
      await arm(berth, 'server', place, 'crash')
      const name = `new-${(made += 1)}`
      // Sent again it finds the name taken: by a unit that can be looked at for an hour.
      expect((await create(name)).status).toBe(409)
      expect(await stillArmed(berth)).toEqual([])
      await expectInvariants(berth, WITHIN_MS)
      const found = (await listUnits(berth)).filter((unit) => unit.name === name)
      expect(found.map(({ state }) => state)).toEqual(['error'])
      expect(found[0]?.destroysAt).not.toBeNull()
      await expectGone(found)
    },
  )

  it.each(placesOf('start', 'start.undo'))(
    'a server killed at %s leaves a unit that can be started',
    async (place) => {
      const unit = await makeMarked()
      await act(unit, 'stop')
      await arm(berth, 'server', 'start.ready.before', 'error')
      await arm(berth, 'server', place, 'crash')
      expect((await act(unit, 'start')).unsure).toBe(true)
      expect(await stillArmed(berth)).toEqual([])
      await expectInvariants(berth, WITHIN_MS)
      await expectFiles(unit)
    },
  )
})

/** How each way is begun, with a running unit; `cool` begins by itself with one that is frozen. */
const prepared: Record<Saga, (unit: Unit) => Promise<unknown>> = {
  create: async () => {},
  destroy: async () => {},
  start: (unit) => act(unit, 'stop'),
  wake: (unit) => sleepNow(unit),
  sleep: async () => {},
  cool: async () => {},
  stop: async () => {},
}
type Repeatable = Exclude<Saga, 'create' | 'destroy'>
const sent: Record<Repeatable, (unit: Unit) => Promise<unknown>> = {
  start: (unit) => act(unit, 'start'),
  wake: (unit) => act(unit, 'start'),
  sleep: (unit) => sleepNow(unit),
  cool: (unit) => sleepNow(unit),
  stop: (unit) => act(unit, 'stop'),
}
const arrives: Record<Repeatable, Partial<Unit>> = {
  start: { state: 'running', stoppedReason: null },
  wake: { state: 'running', stoppedReason: null },
  sleep: { state: 'sleeping', stoppedReason: 'idle' },
  cool: { state: 'sleeping', stoppedReason: 'idle' },
  stop: { state: 'stopped', stoppedReason: 'user' },
}

/** Sent again after a crash, a create finds its unit there already, and makes no other. */
async function expectOneEach(names: string[]): Promise<void> {
  const replies = await Promise.all(names.map((name) => create(name)))
  for (const { status, unsure } of replies) expect(unsure ? [201, 409] : [201]).toContain(status)
  await eventually(async () => {
    const found = (await listUnits(berth)).filter(({ name }) => names.includes(name))
    expect(found.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual(
      names.map((name) => `${name} running`).toSorted(),
    )
  }, WITHIN_MS)
  const found = (await listUnits(berth)).filter(({ name }) => names.includes(name))
  await expectInvariants(berth, WITHIN_MS)
  await expectGone(found)
}

async function expectGone(doomed: Unit[]): Promise<void> {
  const calls = doomed.map(({ id }) => patiently<Unit>({ method: 'DELETE', path: `/v1/units/${id}` }))
  for (const { status, body } of await Promise.all(calls)) {
    expect(status).toBe(200)
    expect(body.state).toBe('destroyed')
  }
}

async function makeMarked(): Promise<Unit> {
  const unit = await createUnit(berth, specOf(`unit-${(made += 1)}`))
  const body = Buffer.from(unit.name)
  expect((await patiently({ method: 'PUT', path: markOf(unit), body })).status).toBe(200)
  return unit
}

/** Wakes or starts it for that. */
async function expectFiles(unit: Unit): Promise<void> {
  expect((await act(unit, 'start')).status).toBe(200)
  const { body } = await patiently<{ contentBase64: string }>({ method: 'GET', path: markOf(unit) })
  expect(Buffer.from(body.contentBase64, 'base64').toString()).toBe(unit.name)
}

const specOf = (name: string) => ({ name, image: 'berth.local/debian:12', size: 'nano' })
const markOf = ({ id }: Unit) => `/v1/units/${id}/files?path=/root/mark`

function create(name: string): Promise<Reply<RunResult>> {
  return patiently({ method: 'POST', path: '/v1/units', body: { spec: specOf(name), stack: name } })
}

async function get({ id }: Unit): Promise<Unit> {
  return (await patiently<Unit>({ method: 'GET', path: `/v1/units/${id}` })).body
}

function act(unit: Unit, action: string, body?: unknown): Promise<Reply<Unit>> {
  return patiently({ method: 'POST', path: `/v1/units/${unit.id}/${action}`, body })
}

function sleepNow(unit: Unit): Promise<Reply<unknown>> {
  return act(unit, 'sleep', { sleep: '30m', now: true })
}

function patiently<T>(call: Call): Promise<Reply<T>> {
  return callPatiently(berth, call, WITHIN_MS)
}
