// A create of several units of which one fails (reliability F23): for any unit, step and reason, only a row with the
// reason is left, and the same create succeeds when it is sent again.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import { findUnsettled } from '../../../test/support/invariants.ts'
import { settle } from '../../../test/support/settle.ts'
import type { App } from '../../app.ts'
import { findStackByName } from '../../store/stacks.ts'
import type { Unit } from '../../contract/unit.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import type { Caller } from '../credentials/caller.ts'
import { createPlanned, createUnits, createOperation } from '../units/create.ts'
import { planOfSpec } from '../units/model/plan.ts'
import { listUnits } from '../units/list.ts'
import { cleanUpFailedCreates } from '../units/create-group.ts'
import { reconcileMachines, recover, resumeOperations } from '../units/reconcile.ts'
import { createBody } from '../../../test/support/domain.ts'
import { defineRecipe } from './define.ts'

const unit = () => ({ image: 'berth.local/debian:12', healthcheck: { cmd: ['probe'], intervalMs: 500 } })
const trio = defineRecipe({
  name: 'trio',
  title: 'Three units',
  description: 'Each waits for the one before it.',
  tags: [],
  params: {},
  secrets: [],
  units: { first: unit, second: unit, main: unit },
  frontDoor: null,
  outputs: {},
})
const names = ['trio-first', 'trio-second', 'trio']

const { name: operation, steps } = createOperation.saga
const sides = steps.flatMap(({ name }) => [`${operation}.${name}.before`, `${operation}.${name}.after`])
/** A failure of the last step runs every undo. */
const lastFailure = `${operation}.${steps.at(-1)?.name ?? ''}.after`
const undoSides = steps
  .filter(({ undo }) => undo)
  .flatMap(({ name }) => [`${operation}.${name}.undo.before`, `${operation}.${name}.undo.after`])
/** Units reach these steps one after the other, and all others side by side. */
const isInTurn = (place: string) => /start|ready|undo/.test(place)
const inTurn = (places: string[]) => names.flatMap((name) => places.map((place) => ({ name, place })))
/** The jobs that repair what a fault left. */
const loops = [reconcileMachines, resumeOperations, cleanUpFailedCreates]

let domain: TestDomain
let caller: Caller
/** Called for each probe of a unit; returns the exit code of the probe. */
let onProbe: (id: string) => number

beforeAll(async () => {
  domain = await createTestDomain()
  domain.engine.onExec(({ id, argv: [program] }) => (program === 'probe' ? { exitCode: onProbe(id) } : null))
})
beforeEach(async () => {
  caller = await domain.makeCaller()
  onProbe = () => 0
})
afterEach(async () => {
  expect([...domain.faults.keys()], 'trouble that was never met').toEqual([])
  await domain.app.db.deleteFrom('units').execute()
  await domain.app.db.deleteFrom('stacks').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

async function unitsOf(app = domain.app): Promise<Unit[]> {
  const { units } = await listUnits(app, caller, { all: true, limit: 100 })
  return units.toReversed()
}
const statesOf = (units: Unit[]) => units.map(({ state }) => state)

const act = async (app = domain.app, stack?: string) =>
  await createPlanned(
    app,
    caller,
    {
      plan: {
        recipe: trio.name,
        name: trio.name,
        isNamed: true,
        stack,
        expose: undefined,
        make: (at) => trio.make({ ...at, params: {}, secrets: {} }),
      },
      wait: { wait: true, waitTimeoutMs: 5 * MINUTE },
    },
    null,
  )

/** Sets the fault when it is the turn of this unit, and not of one before it. Resolves once it is set. */
function setFor(name: string, place: string, set: () => void): Promise<void> {
  const isSet = Promise.withResolvers<void>()
  const strike = () => {
    set()
    isSet.resolve()
  }
  // What comes after its own probe comes after those of the others, too.
  const at = names.indexOf(name) + (place === lastFailure ? 1 : 0)
  let probes = 0
  if (at === 0 || !isInTurn(place)) strike()
  else {
    onProbe = () => {
      probes += 1
      if (probes === at) strike()
      return 0
    }
  }
  return isSet.promise
}

const met = async (place: string) =>
  await expect.poll(() => domain.faults.has(place), { interval: 1 }).toBe(false)

async function restart(): Promise<App> {
  const app = domain.restarted()
  await recover(app)
  return app
}

/** Nothing runs, holds a name or costs any more, and units that ran cost what they ran. */
async function endsInNothing(app: App, culprit: string | null): Promise<void> {
  await settle(domain, app, loops)
  const units = await unitsOf(app)
  const inError = units.filter(({ state }) => state === 'error')
  expect(inError.length).toBeGreaterThan(0)
  if (culprit !== null) expect(inError.map(({ name }) => name)).toContain(culprit)
  expect(units.filter(({ state }) => state !== 'error' && state !== 'destroyed')).toEqual([])
  expect(domain.engine.machines()).toEqual([])
  for (const { startedAt, costCentsSoFar, state, error } of units) {
    if (startedAt === null) expect(costCentsSoFar).toBe(0)
    if (state === 'error') expect(error).toBeTruthy()
  }
  const cost = units.reduce((sum, { costCentsSoFar }) => sum + costCentsSoFar, 0)
  domain.clock.advance(10 * MINUTE)
  const later = await unitsOf(app)
  expect(later.reduce((sum, { costCentsSoFar }) => sum + costCentsSoFar, 0)).toBe(cost)
  const { teamId } = caller
  expect(await findStackByName(app.db, { teamId, name: 'trio' })).toBeNull()
  onProbe = () => 0
  const again = await act(app)
  expect(again.units.map(({ name, state, internalHost }) => [name, state, internalHost])).toEqual(
    names.map((name) => [name, 'running', `${name}.trio.internal`]),
  )
}

async function endsWell(app: App): Promise<void> {
  await settle(domain, app, loops)
  const units = await unitsOf(app)
  expect(units.map(({ name, state }) => [name, state])).toEqual(names.map((name) => [name, 'running']))
}

async function failureOf(
  acting: Promise<unknown>,
): Promise<{ message: string; details: { unitId: string } }> {
  const failure = await acting.then(
    () => null,
    (error: unknown) => error,
  )
  expect(failure).toMatchObject({ status: 502, code: 'provider_error' })
  return failure as { message: string; details: { unitId: string } }
}

/** The name of the unit that the answer blames. */
async function culpritOf({ message, details }: Awaited<ReturnType<typeof failureOf>>): Promise<string> {
  const unit = (await unitsOf()).find(({ id }) => id === details.unitId)
  expect(unit?.state).toBe('error')
  expect(message).toBe(`"${unit?.name}" could not be created: ${unit?.error}`)
  return unit?.name ?? ''
}

describe('a create that meets an error', () => {
  it.each(inTurn(sides))('of $name at $place leaves nothing, and fails with 502', async ({ name, place }) => {
    void setFor(name, place, () => domain.faults.set(place, 'error'))
    const culprit = await culpritOf(await failureOf(act()))
    if (isInTurn(place)) expect(culprit).toBe(name)
    // By then an operation that fails has undone all its steps.
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
    await endsInNothing(domain.app, culprit)
  })

  it.each(undoSides)('at %s is cleaned up by the reconciler', async (place) => {
    void setFor('trio', lastFailure, () => domain.faults.set(lastFailure, 'error').set(place, 'error'))
    await culpritOf(await failureOf(act()))
    await endsInNothing(domain.app, 'trio')
  })
})

describe('a create whose server crashes', () => {
  it.each(inTurn(sides))('as $name is at $place completes after the restart', async ({ name, place }) => {
    const set = setFor(name, place, () => domain.faults.set(place, 'crash'))
    act().catch(() => {})
    await set
    await met(place)
    // What a crashed server of the test before still does may have met it.
    await expect.poll(() => unitsOf()).toHaveLength(names.length)
    await endsWell(await restart())
  })

  it.each(undoSides)('at %s leaves nothing after the restart', async (place) => {
    const set = setFor('trio', lastFailure, () => domain.faults.set(lastFailure, 'error').set(place, 'crash'))
    act().catch(() => {})
    await set
    await met(place)
    await endsInNothing(await restart(), 'trio')
  })
})

describe('a create of several units', () => {
  it('names the image that is missing', async () => {
    domain.engine.fail('pull', 'image_not_found')
    const failure = await failureOf(act())
    expect(failure.message).toContain('Image "berth.local/debian:12"')
    await endsInNothing(domain.app, await culpritOf(failure))
  })

  it.each(names)('fails when the healthcheck of %s never passes, and names the unit', async (name) => {
    let passed = 0
    onProbe = () => (passed++ < names.indexOf(name) ? 0 : 1)
    const waiting = setInterval(() => domain.clock.advance(SECOND), 2)
    const failure = await failureOf(act()).finally(() => clearInterval(waiting))
    expect(failure.message).toContain(`"${name}"`)
    expect(failure.message).toContain('healthcheck')
    await endsInNothing(domain.app, name)
  })

  it('fails when a unit that others need exits at once, and gives its exit code', async () => {
    onProbe = (id) => {
      domain.engine.endProcess(id, { code: 7 })
      return 1
    }
    const failure = await failureOf(act())
    expect(failure.message).toContain(`It needs the unit "trio-first": The unit's process ended with code 7`)
    await endsInNothing(domain.app, null)
  })

  it('succeeds when a unit that no other needs exits, and shows that unit as stopped', async () => {
    let passed = 0
    onProbe = (id) => {
      passed += 1
      if (passed < names.length) return 0
      domain.engine.endProcess(id, { code: 1 })
      return 1
    }
    const { units } = await act()
    expect(statesOf(units)).toEqual(['running', 'running', 'stopped'])
    expect(units[2]).toMatchObject({
      stoppedReason: 'exited',
      lastExit: { code: 1, oomKilled: false },
      error: expect.stringContaining('/logs') as string,
    })
  })
})

describe('the stack of a create that fails', () => {
  const fail = async (stack: string) => {
    domain.engine.fail('pull', 'image_not_found')
    await failureOf(act(domain.app, stack))
    await settle(domain, domain.app, loops)
  }
  const find = async (name: string) => await findStackByName(domain.app.db, { teamId: caller.teamId, name })

  it('is deleted when the create made it', async () => {
    await fail('live')
    expect(await find('live')).toBeNull()
    const { units } = await act(domain.app, 'live')
    expect(units[0]?.internalHost).toBe('trio-first.live.internal')
  })

  it('is kept when it existed before, and its names are free again', async () => {
    const plan = planOfSpec(createBody({ name: 'web' }, { stack: 'live' }))
    await createPlanned(domain.app, caller, { plan, wait: { wait: true, waitTimeoutMs: MINUTE } }, null)
    await fail('live')
    expect(await find('live')).not.toBeNull()
    const { units } = await act(domain.app, 'live')
    expect(units.map(({ name }) => name)).toEqual(names)
  })

  it('is kept when another create uses it by then', async () => {
    const release = domain.engine.hang('pull', { times: 3 })
    const acting = failureOf(act(domain.app, 'live'))
    await expect.poll(async () => (await unitsOf()).length).toBe(3)
    const others = createUnits(domain.app, caller, createBody({ name: 'web' }, { stack: 'live' }))
    domain.engine.fail('create', 'host_full')
    release()
    await Promise.all([acting, others.catch(() => {})])
    expect(await find('live')).not.toBeNull()
  })
})
