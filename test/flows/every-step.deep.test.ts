// Kills Berth at every step of every unit operation while it serves callers on real machines: the server before and after
// each step and undo, the engine after each effect (reliability F1). Each time a caller that retries must find one unit in
// the requested state with its files, and the host must match the database. `npm test` covers a part of the failpoints,
// a different one each day.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { createOperation } from '../../src/domain/units/create.ts'
import { destroyOperation } from '../../src/domain/units/destroy.ts'
import { forkSaga } from '../../src/domain/forks/run.ts'
import { hibernateOperation, sleepOperation } from '../../src/domain/units/activity/hibernate.ts'
import { startOperation } from '../../src/domain/units/lifecycle/run.ts'
import { stopOperation } from '../../src/domain/units/stop.ts'
import { thawOperation } from '../../src/domain/units/activity/thaw.ts'
import { eventually } from '../support/berth.ts'
import { reachedFailpoints } from '../support/criu.ts'
import { Drill, WITHIN_MS } from '../support/drill.ts'
import { arm, disarm, stillArmed } from '../support/failpoints.ts'
import { expectInvariants } from '../support/host-invariants.ts'
import { partOf } from '../support/part-of.ts'

type Verb = 'create' | 'start' | 'wake' | 'sleep' | 'hibernate' | 'stop' | 'destroy' | 'fork' | 'process'
type Life = {
  role: 'server' | 'engine'
  isolation: 'runc' | 'gvisor'
  frozenFor: string
  /** Units are asleep when they are started; otherwise they are stopped. */
  from?: 'asleep'
  places: string[]
}

const around = (saga: string, ...steps: string[]) =>
  steps.flatMap((step) => [`${saga}.${step}.before`, `${saga}.${step}.after`])

const operations = [
  createOperation,
  startOperation,
  thawOperation,
  sleepOperation,
  hibernateOperation,
  stopOperation,
  destroyOperation,
]
const sagas = [...operations.map(({ saga }) => saga), forkSaga]
const everyPlace = [
  ...sagas.flatMap(({ name, steps }) => around(name, ...steps.map((step) => step.name))),
  ...sagas.flatMap(({ name: saga, steps }) =>
    steps.flatMap(({ name, undo }) => (undo ? around(saga, `${name}.undo`) : [])),
  ),
  ...reachedFailpoints.map((place) => `${place}.after`),
]

/** The supervisor's restart delay grows with each death, so each instance of Berth has only a few. */
const DEATHS = 4
const runc = { isolation: 'runc', frozenFor: 'never' } as const
const server = (places: string[], life: Partial<Life> = {}): Life => ({
  role: 'server',
  ...runc,
  places,
  ...life,
})

/** The state after one effect equals the state before the next, so testing after each effect is enough. */
const engineLives: Life[] = Array.from(
  { length: Math.ceil(reachedFailpoints.length / DEATHS) },
  (_, life) => ({
    role: 'engine',
    ...runc,
    places: reachedFailpoints.slice(life * DEATHS, (life + 1) * DEATHS).map((place) => `${place}.after`),
  }),
)

const serverLives: Life[] = [
  server(around('create', 'image', 'machine', 'order')),
  server(around('create', 'start', 'ready')),
  server([...around('sleep', 'freeze'), ...around('wake', 'thaw')]),
  server([...around('stop', 'stop'), ...around('destroy', 'machine')]),
  server(around('start', 'start', 'ready')),
  server(around('start', 'start', 'ready'), { frozenFor: '0s', from: 'asleep' }),
  server(around('hibernate', 'suspend'), { frozenFor: '1s' }),
  server(around('fork', 'copy')),
  server(around('fork', 'start', 'ready')),
]
const undoing = [
  ...around('create', 'start.undo', 'machine.undo'),
  ...around('start', 'start.undo'),
  ...around('fork', 'copy.undo'),
]
const gvisor = { isolation: 'gvisor' } as const
const gvisorLives: Life[] = [
  server(
    ['create.machine.after', 'create.start.before', 'create.start.after', 'destroy.machine.before'],
    gvisor,
  ),
  server(['sleep.freeze.before', 'wake.thaw.after', 'stop.stop.before', 'start.start.after'], gvisor),
]

const deaf = { cmd: ['sh', '-c', 'trap "" TERM; while :; do sleep 1000 & wait; done'] }

/** Each lane has its own data directory and runs in parallel, because most of the time is spent waiting. */
const lanes = [
  { lane: 'of operations', lives: serverLives, inPart: 3 },
  { lane: 'of effects', lives: engineLives, inPart: 2 },
  { lane: 'in gVisor', lives: gvisorLives, inPart: 1 },
]

const oneByOne = { concurrent: false }

it('every failpoint is covered by a crash test', () => {
  const drilled = lanes.flatMap(({ lives }) => lives.flatMap(({ places }) => places))
  expect([...new Set([...drilled, ...undoing])].toSorted()).toEqual(everyPlace.toSorted())
})

describe.concurrent.each(lanes)('killed in the middle $lane', ({ lane, lives, inPart }) => {
  const drill = new Drill()
  afterAll(() => drill.close())

  describe.each(partOf(lives, inPart))(
    'with $isolation and units frozen for $frozenFor',
    oneByOne,
    (life) => {
      let units: Unit[]

      beforeAll(async () => {
        await drill.startAnew({ BERTH_ISOLATION: life.isolation, BERTH_FROZEN_FOR: life.frozenFor })
        // Two units, so that the crash also hits a call in an unrelated place.
        units = await Promise.all([drill.makeUnit(), drill.makeUnit()])
      })
      afterEach(() => disarm(drill.berth))
      afterAll(() => drill.expectDestroys(units))

      it.each(life.places)(
        `a death of the ${life.role} at %s delays callers but has no other effect`,
        async (place) => {
          // A unit that stops on request is never killed, so this failpoint needs one that does not.
          const others = place === 'engine.stop.kill.after' ? [await drill.makeUnit(deaf)] : []
          await expectUnharmed(drill, life, place, [...units, ...others])
          await drill.expectDestroys(others)
        },
      )
    },
  )

  if (lane !== 'in gVisor') return
  describe('during an undo', oneByOne, () => {
    beforeAll(() => drill.startAnew({ BERTH_ISOLATION: 'runc' }))
    afterEach(() => disarm(drill.berth))

    it.each(partOf(undoing, 3))('the server dies at %s, and the undo is completed', async (place) => {
      if (place.startsWith('create.')) await expectCreateUndone(drill, place)
      else if (place.startsWith('fork.')) await expectForkUndone(drill, place)
      else await expectStartUndone(drill, place)
    })
  })
})

async function expectUnharmed(drill: Drill, life: Life, place: string, units: Unit[]): Promise<void> {
  const { berth } = drill
  const verb = verbOf(place)
  await Promise.all(units.map((unit) => prepare(drill, verb, life, unit)))
  const before = await berth.pidOf(life.role)
  await arm(berth, life.role, place, 'crash')
  if (verb === 'create') await expectOneEach(drill, [drill.newName(), drill.newName()])
  else if (verb === 'destroy')
    await drill.expectDestroys(await Promise.all([drill.makeUnit(), drill.makeUnit()]))
  else if (verb === 'fork') {
    // The data of a source may already have been flushed, so it may take several forks to reach the failpoint.
    for (let time = 0; time < 5 && (time === 0 || (await stillArmed(berth)).length > 0); time += 1)
      await Promise.all(units.map((unit) => expectForks(drill, unit)))
  } else if (verb === 'process') await expectProcesses(drill, units)
  else await expectArrives(drill, verb, units)
  await eventually(async () => expect(await stillArmed(berth)).toEqual([]), WITHIN_MS)
  await eventually(async () => expect(await berth.pidOf(life.role)).not.toBe(before))
  await expectInvariants(berth, WITHIN_MS)
  for (const unit of units) await drill.expectFiles(unit)
}

/** Engine effects that are caused by another API call than their name suggests. */
const verbsOfEffects: Record<string, Verb> = {
  // Only at the first start.
  'engine.start.etc': 'create',
  'engine.freeze': 'sleep',
  'engine.thaw': 'wake',
  'engine.exit.record': 'stop',
}

function verbOf(place: string): Verb {
  const effect = place.replace(/\.(?:before|after)$/, '')
  if (effect.startsWith('engine.cleanup.')) return 'stop'
  if (effect.startsWith('engine.process.')) return 'process'
  if (effect.startsWith('engine.checkpoint.')) return 'fork'
  return verbsOfEffects[effect] ?? (effect.replace('engine.', '').split('.')[0] as Verb)
}

async function prepare(drill: Drill, verb: Verb, { from }: Life, unit: Unit): Promise<void> {
  await drill.act(unit, 'start')
  if (verb === 'wake' || (verb === 'start' && from === 'asleep')) await drill.sleepNow(unit)
  else if (verb === 'start') await drill.act(unit, 'stop')
}

const arrivals: Record<Exclude<Verb, 'create' | 'destroy' | 'fork' | 'process'>, Partial<Unit>> = {
  start: { state: 'running', stoppedReason: null },
  wake: { state: 'running', stoppedReason: null },
  sleep: { state: 'sleeping', stoppedReason: 'idle' },
  // Happens by itself once the unit sleeps.
  hibernate: { state: 'sleeping', stoppedReason: 'idle' },
  stop: { state: 'stopped', stoppedReason: 'user' },
}

async function expectArrives(drill: Drill, verb: keyof typeof arrivals, units: Unit[]): Promise<void> {
  const isSleep = verb === 'sleep' || verb === 'hibernate'
  const send = (unit: Unit) =>
    isSleep ? drill.sleepNow(unit) : drill.act(unit, verb === 'wake' ? 'start' : verb)
  for (const { status } of await Promise.all(units.map(send))) expect(status).toBe(200)
  await eventually(async () => {
    for (const unit of units) expect(await drill.get(unit)).toMatchObject(arrivals[verb])
  }, WITHIN_MS)
}

/** Every process is listed and none stays in state running. */
async function expectProcesses(drill: Drill, units: Unit[]): Promise<void> {
  for (const unit of units) {
    const { status, body } = await drill.act(unit, 'processes', { cmd: ['true'] })
    expect([status, body]).toEqual([201, expect.objectContaining({ unitId: unit.id })])
  }
  await eventually(async () => {
    for (const { id } of units) {
      const path = `/v1/units/${id}/processes`
      const { body } = await drill.call<{ processes: { state: string }[] }>({ method: 'GET', path })
      expect(body.processes.map(({ state }) => state)).not.toContain('running')
      expect(body.processes).not.toEqual([])
    }
  }, WITHIN_MS)
}

async function expectOneEach(drill: Drill, names: string[]): Promise<void> {
  const replies = await Promise.all(names.map((name) => drill.create(name)))
  const told = replies.map(({ status, body }) => [status, body.units?.[0]?.state])
  expect(told).toEqual(names.map(() => [201, 'running']))
  const found = await drill.named(names)
  expect(found.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  await expectInvariants(drill.berth, WITHIN_MS)
  await drill.expectDestroys(found)
}

/** Forks a unit alone and with its stack, because forks of several units are journaled. */
async function expectForks(drill: Drill, unit: Unit): Promise<void> {
  const [name, into] = [drill.newName(), drill.newName()]
  // Enough data that a flush has something to write.
  const cmd = ['dd', 'if=/dev/zero', 'of=/root/large', 'bs=1M', 'count=32']
  expect((await drill.act(unit, 'exec', { cmd })).status).toBe(200)
  const one = await drill.fork(`units/${unit.id}`, { name })
  const both = await drill.fork(`stacks/${unit.stackId}`, { into })
  expect([one, both].map(({ status, body }) => [status, body.units?.map(({ state }) => state)])).toEqual([
    [201, ['running']],
    [201, ['running', 'running']],
  ])
  const copies = [...one.body.units, ...both.body.units]
  for (const copy of copies) await drill.expectFiles({ ...copy, name: unit.name })
  await drill.expectDestroys(copies)
}

async function expectForkUndone(drill: Drill, place: string): Promise<void> {
  const unit = await drill.makeUnit()
  await arm(drill.berth, 'server', 'fork.ready.before', 'error')
  await arm(drill.berth, 'server', place, 'crash')
  const name = drill.newName()
  expect((await drill.fork(`units/${unit.id}`, { name })).status).toBe(502)
  await eventually(async () => expect(await stillArmed(drill.berth)).toEqual([]))
  await expectInvariants(drill.berth, WITHIN_MS)
  const found = await drill.named([name])
  expect(found.map(({ state }) => state)).toEqual(['error'])
  await drill.expectFiles(unit)
  await drill.expectDestroys([unit, ...found])
}

async function expectCreateUndone(drill: Drill, place: string): Promise<void> {
  await arm(drill.berth, 'server', 'create.ready.before', 'error')
  await arm(drill.berth, 'server', place, 'crash')
  const name = drill.newName()
  expect((await drill.create(name)).status).toBe(502)
  await eventually(async () => expect(await stillArmed(drill.berth)).toEqual([]))
  await expectInvariants(drill.berth, WITHIN_MS)
  const found = await drill.named([name])
  expect(found.map(({ state }) => state)).toEqual(['error'])
  expect(found[0]?.destroysAt).not.toBeNull()
  await drill.expectDestroys(found)
}

async function expectStartUndone(drill: Drill, place: string): Promise<void> {
  const unit = await drill.makeUnit()
  await drill.act(unit, 'stop')
  await arm(drill.berth, 'server', 'start.ready.before', 'error')
  await arm(drill.berth, 'server', place, 'crash')
  // The retry succeeds: leftovers of the first attempt do not prevent the start.
  expect((await drill.act(unit, 'start')).status).toBe(200)
  expect(await stillArmed(drill.berth)).toEqual([])
  await expectInvariants(drill.berth, WITHIN_MS)
  await drill.expectFiles(unit)
}
