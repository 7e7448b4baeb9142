// A fault at every step of every operation of a unit (reliability F1, F2, F3, F24): a crash, an error, a hang, or a
// step that runs twice; before the step, after it, and while it is undone. The cases are derived from the operations,
// so a new step is covered at once and a new operation that is missing here fails a test.

import { glob } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { findUnsettled } from '../../../test/support/invariants.ts'
import { settle } from '../../../test/support/settle.ts'
import type { App } from '../../app.ts'
import type { Unit } from '../../contract/unit.ts'
import type { Operation } from '../../../test/support/fake-engine/faults.ts'
import { HOUR } from '../../lib/clock.ts'
import { findUnitOfAnyTeam } from '../../store/units.ts'
import type { Caller } from '../credentials/caller.ts'
import { createOperation } from './create.ts'
import { destroyErroredUnits, destroyUnit, destroyOperation } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { exposeUnit } from './expose.ts'
import { hibernateUnit, hibernateOperation, sleepOperation } from './activity/hibernate.ts'
import { readFile, writeFile } from './files.ts'
import { listUnits } from './list.ts'
import { reconcileMachines, recover, resumeOperations } from './reconcile.ts'
import { restartOperation, startOperation } from './lifecycle/run.ts'
import { sleepUnit } from './sleep.ts'
import { startUnit } from './start.ts'
import { stopUnit, stopOperation } from './stop.ts'
import { thawOperation } from './activity/thaw.ts'
import type { UnitOperation } from './lifecycle/operation.ts'

type Act = (app: App, caller: Caller, id: string) => Promise<unknown>

const create: Act = (app, caller) =>
  makeUnit(app, caller, { healthcheck: { cmd: ['true'], intervalMs: 500, timeoutMs: 5_000 } })
const use: Act = (app, caller, id) => execInUnit(app, caller, id, { cmd: ['true'], timeoutMs: 5_000 })
const sleep: Act = (app, caller, id) => sleepUnit(app, caller, id, { sleep: '1h', stack: false, now: true })
const hibernate: Act = async (app, _caller, id) => {
  const unit = await findUnitOfAnyTeam(app.db, { id, now: app.clock.now() })
  if (unit) await hibernateUnit(app, unit)
}

const publishAt =
  (port: number): Act =>
  (app, caller, id) =>
    exposeUnit(app, caller, id, { port, rotate: false })

/** The calls that bring a new unit to where an operation begins. */
const places = {
  running: [],
  published: [publishAt(80)],
  stopped: [stopUnit],
  frozen: [sleep],
  cold: [sleep, hibernate],
} satisfies Record<string, Act[]>

type Scenario = {
  name: string
  operation: UnitOperation
  from: keyof typeof places | null
  act: Act
  ends: Unit['state']
  /** The state after an error, once the jobs have run. Left out: the operation completes all the same. */
  endsOnError?: Unit['state']
  /** The engine calls of the operation. */
  asks: Operation[]
}

const scenarios: Scenario[] = [
  {
    name: 'create',
    operation: createOperation,
    from: null,
    act: create,
    ends: 'running',
    endsOnError: 'error',
    asks: ['pull', 'create', 'start', 'exec'],
  },
  {
    name: 'start',
    operation: startOperation,
    from: 'stopped',
    act: startUnit,
    ends: 'running',
    endsOnError: 'stopped',
    asks: ['start', 'exec'],
  },
  {
    name: 'cold wake',
    operation: startOperation,
    from: 'cold',
    act: use,
    ends: 'running',
    endsOnError: 'sleeping',
    asks: ['start', 'exec'],
  },
  { name: 'wake', operation: thawOperation, from: 'frozen', act: use, ends: 'running', asks: ['thaw'] },
  {
    name: 'restart',
    operation: restartOperation,
    from: 'published',
    act: publishAt(81),
    ends: 'running',
    endsOnError: 'sleeping',
    asks: ['stop', 'start', 'exec'],
  },
  { name: 'stop', operation: stopOperation, from: 'running', act: stopUnit, ends: 'stopped', asks: ['stop'] },
  {
    name: 'stop when asleep',
    operation: stopOperation,
    from: 'frozen',
    act: stopUnit,
    ends: 'stopped',
    asks: ['stop'],
  },
  {
    name: 'sleep',
    operation: sleepOperation,
    from: 'running',
    act: sleep,
    ends: 'sleeping',
    asks: ['freeze'],
  },
  {
    name: 'hibernate',
    operation: hibernateOperation,
    from: 'frozen',
    act: hibernate,
    ends: 'sleeping',
    asks: ['suspend'],
  },
  {
    name: 'destroy',
    operation: destroyOperation,
    from: 'running',
    act: destroyUnit,
    ends: 'destroyed',
    asks: ['destroy'],
  },
  {
    name: 'destroy when stopped',
    operation: destroyOperation,
    from: 'stopped',
    act: destroyUnit,
    ends: 'destroyed',
    asks: ['destroy'],
  },
  {
    name: 'destroy when asleep',
    operation: destroyOperation,
    from: 'frozen',
    act: destroyUnit,
    ends: 'destroyed',
    asks: ['destroy'],
  },
]

/** Both sides of every step, with the scenario that reaches it. */
const sides = scenarios.flatMap((scenario) =>
  scenario.operation.saga.steps.flatMap(({ name }) =>
    ['before', 'after'].map((side) => ({
      scenario,
      place: `${scenario.operation.saga.name}.${name}.${side}`,
    })),
  ),
)
const steps = scenarios.flatMap((scenario) =>
  scenario.operation.saga.steps.map(({ name }) => ({
    scenario,
    place: `${scenario.operation.saga.name}.${name}`,
  })),
)
/** A failure of the last step runs every undo. */
const undos = scenarios.flatMap((scenario) => {
  const { name, steps } = scenario.operation.saga
  const failure = `${name}.${steps.at(-1)?.name ?? ''}.after`
  return steps
    .filter(({ undo }) => undo)
    .map((step) => ({ scenario, failure, place: `${name}.${step.name}.undo` }))
})
const undoSides = undos.flatMap(({ place, ...rest }) =>
  ['before', 'after'].map((side) => ({ ...rest, place: `${place}.${side}` })),
)
const asked = scenarios.flatMap((scenario) =>
  scenario.asks.flatMap((operation) =>
    (['before', 'after'] as const).map((when) => ({ scenario, operation, when })),
  ),
)
/** Longer than any operation may take. */
const LONGER_THAN_ANY_WAY_MS = HOUR
/** The jobs that repair what a fault left. */
const loops = [reconcileMachines, resumeOperations]

let domain: TestDomain
let caller: Caller
let id: string

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
})
afterEach(async () => {
  expect([...domain.faults.keys()], 'trouble that was never met').toEqual([])
  domain.faults.clear()
  await domain.app.db.deleteFrom('units').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

const until = async (isSo: () => boolean) => await expect.poll(isSo, { interval: 1 }).toBe(true)
const met = async (place: string) => await until(() => !domain.faults.has(place))

async function onlyUnit(): Promise<Unit> {
  const { units } = await listUnits(domain.app, caller, { all: true, limit: 10 })
  const [unit] = units
  if (!unit || units.length > 1) throw new Error(`expected one unit, found ${units.length}`)
  return unit
}

/** Makes a unit in the state where the scenario begins, with a file that must be kept. A create begins without one. */
async function prepare({ from }: Scenario): Promise<void> {
  id = ''
  if (from === null) return
  await create(domain.app, caller, '')
  id = (await onlyUnit()).id
  await writeFile(domain.app, caller, id, '/data/kept', Buffer.from('kept'))
  for (const act of places[from]) await act(domain.app, caller, id)
}

/** The unit is stable in that state, runs again with its file, and can be destroyed. */
async function endsAs(app: App, { from }: Scenario, state: Unit['state']): Promise<void> {
  await settle(domain, app, loops)
  const unit = await onlyUnit()
  id = unit.id
  expect(unit.state).toBe(state)
  if (state === 'stopped') await startUnit(app, caller, id)
  if (state !== 'error' && state !== 'destroyed') {
    await use(app, caller, id)
    expect(await onlyUnit()).toMatchObject({ id, state: 'running', error: null })
    if (from !== null) {
      const { contentBase64 } = await readFile(app, caller, id, '/data/kept')
      expect(Buffer.from(contentBase64, 'base64').toString()).toBe('kept')
    }
  }
  await endsForGood(app)
}

async function endsForGood(app: App): Promise<void> {
  const { state, destroysAt } = await onlyUnit()
  if (state === 'error') {
    domain.clock.advance(Date.parse(destroysAt ?? '') - domain.clock.now().getTime())
    await destroyErroredUnits(app)
  } else {
    await destroyUnit(app, caller, id)
  }
  for (const act of [startUnit, stopUnit, use, sleep]) {
    await expect(act(app, caller, id)).rejects.toMatchObject({ status: 409 })
  }
  await settle(domain, app, loops)
  expect((await onlyUnit()).state).toBe('destroyed')
  expect(domain.engine.machines()).toEqual([])
}

/** The server dies and starts again. */
async function restart(): Promise<App> {
  const app = domain.restarted()
  await recover(app)
  return app
}

describe('the fault scenarios', () => {
  it('cover every unit operation', async () => {
    const known = new Set(scenarios.map(({ operation }) => operation))
    const found: UnitOperation[] = []
    for await (const path of glob('**/*.ts', { cwd: import.meta.dirname, exclude: ['**/*.test.ts'] })) {
      const exported: Record<string, unknown> = await import(/* @vite-ignore */ `./${path}`)
      found.push(...Object.values(exported).filter(isWay))
    }
    expect(found.length).toBeGreaterThan(0)
    expect(found.filter((operation) => !known.has(operation))).toEqual([])
  })
})

function isWay(value: unknown): value is UnitOperation {
  return typeof value === 'object' && value !== null && 'saga' in value && 'onFailure' in value
}

describe('a crash of the server', () => {
  it.each(sides)(
    'at $place of a $scenario.name is repaired after the restart',
    async ({ scenario, place }) => {
      await prepare(scenario)
      domain.faults.set(place, 'crash')
      scenario.act(domain.app, caller, id).catch(() => {})
      await met(place)
      await endsAs(await restart(), scenario, scenario.ends)
    },
  )

  it.each(undoSides)(
    'at $place of a $scenario.name is repaired after the restart',
    async ({ scenario, failure, place }) => {
      await prepare(scenario)
      domain.faults.set(failure, 'error').set(place, 'crash')
      scenario.act(domain.app, caller, id).catch(() => {})
      await met(place)
      await endsAs(await restart(), scenario, scenario.endsOnError ?? scenario.ends)
    },
  )
})

describe('an error', () => {
  it.each(sides)(
    'at $place of a $scenario.name leaves the unit in its documented state',
    async ({ scenario, place }) => {
      await prepare(scenario)
      domain.faults.set(place, 'error')
      const outcome = scenario.act(domain.app, caller, id)
      if (scenario.operation === thawOperation) await outcome
      else await expect(outcome).rejects.toThrow()
      // By then an operation that fails has undone all its steps.
      if (scenario.endsOnError) expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
      await endsAs(domain.app, scenario, scenario.endsOnError ?? scenario.ends)
    },
  )

  it.each(undoSides)(
    'at $place of a $scenario.name is cleaned up by the reconciler',
    async ({ scenario, failure, place }) => {
      await prepare(scenario)
      domain.faults.set(failure, 'error').set(place, 'error')
      await expect(scenario.act(domain.app, caller, id)).rejects.toThrow()
      await endsAs(domain.app, scenario, scenario.endsOnError ?? scenario.ends)
    },
  )

  it.each(asked)('of the engine $when $operation of a $scenario.name fails with 502', async (fault) => {
    const { scenario, operation, when } = fault
    await prepare(scenario)
    domain.engine.fail(operation, 'internal', { when })
    const failure = await scenario.act(domain.app, caller, id).then(
      () => null,
      (error: unknown) => error,
    )
    // A machine that cannot be frozen is stopped, and one that cannot be thawed is started again: neither is a
    // failure.
    if (operation === 'thaw' || operation === 'freeze') expect(failure).toBeNull()
    else expect(failure).toMatchObject({ status: 502, details: { unitId: (await onlyUnit()).id } })
    await endsAs(domain.app, scenario, scenario.endsOnError ?? scenario.ends)
  })
})

describe('a step that runs twice', () => {
  it.each(steps)('at $place of a $scenario.name has the same result', async ({ scenario, place }) => {
    await prepare(scenario)
    domain.faults.set(place, 'twice')
    await scenario.act(domain.app, caller, id)
    await endsAs(domain.app, scenario, scenario.ends)
  })

  it.each(undos)(
    'at $place of a $scenario.name has the same result',
    async ({ scenario, failure, place }) => {
      await prepare(scenario)
      domain.faults.set(failure, 'error').set(place, 'twice')
      await expect(scenario.act(domain.app, caller, id)).rejects.toThrow()
      await endsAs(domain.app, scenario, scenario.endsOnError ?? scenario.ends)
    },
  )
})

describe('a hang', () => {
  it.each(sides)('at $place of a $scenario.name does not block other units', async ({ scenario, place }) => {
    await prepare(scenario)
    domain.faults.set(place, 'hang')
    void scenario.act(domain.app, caller, id).catch(() => {})
    await met(place)
    const neighbour = await domain.makeCaller()
    const { id: other } = await makeUnit(domain.app, neighbour)
    await sleep(domain.app, neighbour, other)
    await use(domain.app, neighbour, other)
    await destroyUnit(domain.app, neighbour, other)
  })

  it.each(sides.filter(({ scenario }) => scenario.operation !== destroyOperation))(
    'at $place of a $scenario.name does not keep the unit from being destroyed',
    async ({ scenario, place }) => {
      await prepare(scenario)
      domain.faults.set(place, 'hang')
      void scenario.act(domain.app, caller, id).catch(() => {})
      await met(place)
      id = (await onlyUnit()).id
      await endsForGood(domain.app)
    },
  )

  it.each(sides)('at $place of a $scenario.name ends after its timeout', async ({ scenario, place }) => {
    await prepare(scenario)
    domain.faults.set(place, 'hang')
    void scenario.act(domain.app, caller, id).catch(() => {})
    await met(place)
    domain.clock.advance(LONGER_THAN_ANY_WAY_MS)
    await endsAs(domain.app, scenario, scenario.ends)
  })
  it.each(undoSides)(
    'at $place of a $scenario.name leaves the unit in its documented state',
    async ({ scenario, failure, place }) => {
      await prepare(scenario)
      domain.faults.set(failure, 'error').set(place, 'hang')
      void scenario.act(domain.app, caller, id).catch(() => {})
      await met(place)
      await endsAs(domain.app, scenario, scenario.endsOnError ?? scenario.ends)
    },
  )
})
