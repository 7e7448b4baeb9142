// A create of several units of which one cannot be made (reliability F23): whichever it is, at whatever step and for
// whatever reason, nothing is left but a row that says why, and the same can be asked for again at once.

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
import { cleanUpFailedCreates } from '../units/lifecycle/create-group.ts'
import { reconcileMachines, recover, resumeOperations } from '../units/lifecycle/reconcile.ts'
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
/** A failure of the last step has every undo of the way run. */
const lastFailure = `${operation}.${steps.at(-1)?.name ?? ''}.after`
const undoSides = steps
  .filter(({ undo }) => undo)
  .flatMap(({ name }) => [`${operation}.${name}.undo.before`, `${operation}.${name}.undo.after`])
/** Units come to these one after the other; to all others side by side. */
const isInTurn = (place: string) => /start|ready|undo/.test(place)
const inTurn = (places: string[]) => names.flatMap((name) => places.map((place) => ({ name, place })))
/** What makes good whatever went wrong. */
const loops = [reconcileMachines, resumeOperations, cleanUpFailedCreates]

let domain: TestDomain
let caller: Caller
/** Told of each probe of a unit; answers how it exits. */
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
  expect([...domain.troubles.keys()], 'trouble that was never met').toEqual([])
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
        make: (at) => trio.make({ ...at, params: {}, secrets: {}, sleep: undefined }),
      },
      wait: { wait: true, waitTimeoutMs: 5 * MINUTE },
    },
    null,
  )

/** Makes the trouble when it is the turn of this unit, and not of one before it. Resolves once it is set. */
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
  await expect.poll(() => domain.troubles.has(place), { interval: 1 }).toBe(false)

async function restart(): Promise<App> {
  const app = domain.restarted()
  await recover(app)
  return app
}

/** Nothing runs, holds a name or costs any more; what ran has cost what it ran. */
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

/** The one that the answer is about, which it names. */
async function culpritOf({ message, details }: Awaited<ReturnType<typeof failureOf>>): Promise<string> {
  const unit = (await unitsOf()).find(({ id }) => id === details.unitId)
  expect(unit?.state).toBe('error')
  expect(message).toBe(`"${unit?.name}" could not be created: ${unit?.error}`)
  return unit?.name ?? ''
}

describe('an error', () => {
  it.each(inTurn(sides))('of $name at $place leaves nothing, and is 502', async ({ name, place }) => {
    void setFor(name, place, () => domain.troubles.set(place, 'error'))
    const culprit = await culpritOf(await failureOf(act()))
    if (isInTurn(place)) expect(culprit).toBe(name)
    // An operation that gives up has taken everything back by then.
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
    await endsInNothing(domain.app, culprit)
  })

  it.each(undoSides)('at %s is left to the reconciler', async (place) => {
    void setFor('trio', lastFailure, () => domain.troubles.set(lastFailure, 'error').set(place, 'error'))
    await culpritOf(await failureOf(act()))
    await endsInNothing(domain.app, 'trio')
  })
})

describe('a crash of the server', () => {
  it.each(inTurn(sides))('as $name is at $place is made good', async ({ name, place }) => {
    const set = setFor(name, place, () => domain.troubles.set(place, 'crash'))
    act().catch(() => {})
    await set
    await met(place)
    await endsWell(await restart())
  })

  it.each(undoSides)('at %s leaves nothing', async (place) => {
    const set = setFor('trio', lastFailure, () =>
      domain.troubles.set(lastFailure, 'error').set(place, 'crash'),
    )
    act().catch(() => {})
    await set
    await met(place)
    await endsInNothing(await restart(), 'trio')
  })
})

describe('a unit', () => {
  it('whose image is missing says so', async () => {
    domain.engine.fail('pull', 'image_not_found')
    const failure = await failureOf(act())
    expect(failure.message).toContain('Image "berth.local/debian:12"')
    await endsInNothing(domain.app, await culpritOf(failure))
  })

  it.each(names)('%s whose healthcheck never passes says so', async (name) => {
    let passed = 0
    onProbe = () => (passed++ < names.indexOf(name) ? 0 : 1)
    const waiting = setInterval(() => domain.clock.advance(SECOND), 2)
    const failure = await failureOf(act()).finally(() => clearInterval(waiting))
    expect(failure.message).toContain(`"${name}"`)
    expect(failure.message).toContain('healthcheck')
    await endsInNothing(domain.app, name)
  })

  it('whose process ends at once takes those with it that need it, and says how it ended', async () => {
    onProbe = (id) => {
      domain.engine.endProcess(id, { code: 7 })
      return 1
    }
    const failure = await failureOf(act())
    expect(failure.message).toContain(`It needs the unit "trio-first": The unit's process ended with code 7`)
    await endsInNothing(domain.app, null)
  })

  it('that nobody needs ends as one alone would: stopped, with how, and those before it go on', async () => {
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

describe('the stack', () => {
  const fail = async (stack: string) => {
    domain.engine.fail('pull', 'image_not_found')
    await failureOf(act(domain.app, stack))
    await settle(domain, domain.app, loops)
  }
  const find = async (name: string) => await findStackByName(domain.app.db, { teamId: caller.teamId, name })

  it('that a create was to make by its name goes with it', async () => {
    await fail('live')
    expect(await find('live')).toBeNull()
    const { units } = await act(domain.app, 'live')
    expect(units[0]?.internalHost).toBe('trio-first.live.internal')
  })

  it('that was there before stays as it was, and the names in it are free again', async () => {
    const plan = planOfSpec(createBody({ name: 'web' }, { stack: 'live' }))
    await createPlanned(domain.app, caller, { plan, wait: { wait: true, waitTimeoutMs: MINUTE } }, null)
    await fail('live')
    expect(await find('live')).not.toBeNull()
    const { units } = await act(domain.app, 'live')
    expect(units.map(({ name }) => name)).toEqual(names)
  })

  it('that somebody else has taken to meanwhile stays with them', async () => {
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
