// Trouble at every step of a fork's way (reliability F1, F2, F3, F23), as units/fault-loops.test.ts has it for a unit:
// whatever happens, all copies arrive or none does, and the sources stay as they were.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { findUnsettled } from '../../../test/support/invariants.ts'
import { settle } from '../../../test/support/settle.ts'
import type { App } from '../../app.ts'
import { stackForkSchema } from '../../contract/fork.ts'
import type { Unit } from '../../contract/unit.ts'
import type { Operation } from '../../../test/support/fake-engine/faults.ts'
import { HOUR, SECOND } from '../../lib/clock.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyStack } from '../stacks/destroy.ts'
import { destroyErroredUnits, destroyUnit } from '../units/destroy.ts'
import { execInUnit } from '../units/exec.ts'
import { readFile, writeFile } from '../units/files.ts'
import { listUnits } from '../units/list.ts'
import { reconcileMachines, recover, resumeOperations } from '../units/lifecycle/reconcile.ts'
import { sleepUnit } from '../units/sleep.ts'
import { startUnit } from '../units/start.ts'
import { stopUnit } from '../units/stop.ts'
import { forkStack } from './fork-stack.ts'
import { forkSaga, resumeForks } from './run.ts'

const steps = forkSaga.steps.map(({ name }) => `fork.${name}`)
const sides = steps.flatMap((place) => [`${place}.before`, `${place}.after`])
/** A failure of the last step has every undo of the way run. */
const lastFailure = 'fork.ready.after'
const undos = forkSaga.steps.filter(({ undo }) => undo).map(({ name }) => `fork.${name}.undo`)
const undoSides = undos.flatMap((place) => [`${place}.before`, `${place}.after`])
const asked: { operation: Operation; when: 'before' | 'after' }[] = (
  ['fork', 'start', 'exec'] as const
).flatMap((operation) => (['before', 'after'] as const).map((when) => ({ operation, when })))
/** What the copies of these are once they have arrived. */
const arrived = { db: 'running', job: 'stopped', lazy: 'sleeping', web: 'running' }
const sources = ['db', 'job', 'lazy', 'web']
/** What makes good whatever went wrong. */
const loops = [reconcileMachines, resumeOperations, resumeForks]

let domain: TestDomain
let caller: Caller

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
  const { app } = domain
  const healthcheck = { cmd: ['true'], intervalMs: 500, timeoutMs: 5_000 }
  const ids = new Map<string, string>()
  for (const name of sources) {
    const { id } = await makeUnit(app, caller, { name, healthcheck }, { stack: 'shop' })
    await writeFile(app, caller, id, '/data/kept', Buffer.from(`kept by ${name}`))
    ids.set(name, id)
  }
  await sleepUnit(app, caller, ids.get('lazy') ?? '', { sleep: '1h', stack: false, now: true })
  await stopUnit(app, caller, ids.get('job') ?? '')
})
afterEach(async () => {
  expect([...domain.troubles.keys()], 'trouble that was never met').toEqual([])
  domain.troubles.clear()
  await domain.app.db.deleteFrom('units').execute()
  await domain.app.db.deleteFrom('forks').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

const met = async (place: string) =>
  await expect.poll(() => domain.troubles.has(place), { interval: 1 }).toBe(false)
const act = async (app = domain.app) =>
  await forkStack(app, caller, 'shop', stackForkSchema.parse({ into: 'trial' }))

/** Also of a stack that is gone, and of which no list can be asked for any more. */
async function unitsOf(stack: string): Promise<Unit[]> {
  const { units } = await listUnits(domain.app, caller, { all: true, limit: 100 })
  return units.toReversed().filter(({ internalHost }) => internalHost.endsWith(`.${stack}.internal`))
}
const statesOf = (units: Unit[]) => Object.fromEntries(units.map(({ name, state }) => [name, state]))

/** Each copy is as good as any unit: it runs, with what was on the disk of its source, and can be destroyed. */
async function endsWell(app: App): Promise<void> {
  await settle(domain, app, loops)
  const copies = await unitsOf('trial')
  expect(statesOf(copies)).toEqual(arrived)
  for (const { id, name, state } of copies) {
    if (state === 'stopped') await startUnit(app, caller, id)
    await execInUnit(app, caller, id, { cmd: ['true'], timeoutMs: 5_000 })
    const { contentBase64 } = await readFile(app, caller, id, '/data/kept')
    expect(Buffer.from(contentBase64, 'base64').toString()).toBe(`kept by ${name}`)
  }
  await sourcesAreWell(app)
  await destroyStack(app, caller, 'trial')
  await settle(domain, app, loops)
}

/** Nothing is left of it but rows that tell why, and the sources never noticed. */
async function endsInNothing(app: App): Promise<void> {
  await settle(domain, app, loops)
  const copies = await unitsOf('trial')
  expect(statesOf(copies)).toEqual(Object.fromEntries(sources.map((name) => [name, 'error'])))
  const machines = domain.engine.machines().map(({ id }) => id)
  for (const { id, error, costCentsSoFar, startedAt } of copies) {
    expect(machines).not.toContain(id)
    expect(error).toBeTruthy()
    expect([costCentsSoFar, startedAt]).toEqual([0, null])
  }
  await sourcesAreWell(app)
  domain.clock.advance(HOUR)
  await destroyErroredUnits(app)
  await settle(domain, app, loops)
}

async function sourcesAreWell(app: App): Promise<void> {
  const own = await unitsOf('shop')
  expect(statesOf(own)).toEqual(arrived)
  for (const { id, state, name } of own) {
    if (state !== 'running') continue
    const { contentBase64 } = await readFile(app, caller, id, '/data/kept')
    expect(Buffer.from(contentBase64, 'base64').toString()).toBe(`kept by ${name}`)
  }
}

/** The service dies where it stands and comes back. */
async function restart(): Promise<App> {
  const app = domain.restarted()
  await recover(app)
  return app
}

describe('a crash', () => {
  it.each(sides)('at %s is made good', async (place) => {
    domain.troubles.set(place, 'crash')
    act().catch(() => {})
    await met(place)
    await endsWell(await restart())
  })

  it.each(undoSides)('at %s leaves nothing', async (place) => {
    domain.troubles.set(lastFailure, 'error').set(place, 'crash')
    act().catch(() => {})
    await met(place)
    await endsInNothing(await restart())
  })
})

describe('an error', () => {
  it.each(sides)('at %s leaves nothing, and is 502', async (place) => {
    domain.troubles.set(place, 'error')
    await expect(act()).rejects.toMatchObject({ status: 502, details: { unitIds: expect.any(Array) } })
    // An operation that gives up has taken everything back by then.
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
    await endsInNothing(domain.app)
  })

  it.each(undoSides)('at %s is left to the reconciler', async (place) => {
    domain.troubles.set(lastFailure, 'error').set(place, 'error')
    await expect(act()).rejects.toMatchObject({ status: 502 })
    await endsInNothing(domain.app)
  })

  it.each(asked)(
    'of the engine, $when $operation, leaves nothing, and is 502',
    async ({ operation, when }) => {
      domain.engine.fail(operation, 'internal', { when })
      await expect(act()).rejects.toMatchObject({ status: 502 })
      await endsInNothing(domain.app)
    },
  )

  it.each(asked)(
    'of an engine that restarts $when $operation is not noticed',
    async ({ operation, when }) => {
      domain.engine.fail(operation, 'engine_away', { when })
      const waiting = setInterval(() => domain.clock.advance(SECOND / 4), 2)
      await act().finally(() => clearInterval(waiting))
      await endsWell(domain.app)
    },
  )
})

describe('done twice', () => {
  it.each(steps)('%s comes to the same', async (place) => {
    domain.troubles.set(place, 'twice')
    const { copied } = await act()
    expect(copied).toEqual({ db: 'memory', job: 'disk', lazy: 'disk', web: 'memory' })
    await endsWell(domain.app)
  })

  it.each(undos)('%s comes to the same', async (place) => {
    domain.troubles.set(lastFailure, 'error').set(place, 'twice')
    await expect(act()).rejects.toMatchObject({ status: 502 })
    await endsInNothing(domain.app)
  })
})

describe('a hang', () => {
  it.each(sides)('at %s holds up nobody else', async (place) => {
    domain.troubles.set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    const neighbour = await domain.makeCaller()
    const { id } = await makeUnit(domain.app, neighbour)
    await destroyUnit(domain.app, neighbour, id)
    for (const { id: own } of await unitsOf('shop')) await destroyUnit(domain.app, caller, own)
  })

  it.each(sides)('at %s does not keep the copies from being destroyed', async (place) => {
    domain.troubles.set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    await destroyStack(domain.app, caller, 'trial')
    domain.clock.advance(HOUR)
    await settle(domain, domain.app, loops)
    expect(new Set((await unitsOf('trial')).map(({ state }) => state))).toEqual(new Set(['destroyed']))
    await sourcesAreWell(domain.app)
  })

  it.each(sides)('at %s ends with its bound', async (place) => {
    domain.troubles.set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    domain.clock.advance(HOUR / 2)
    await endsWell(domain.app)
  })

  it.each(undoSides)('at %s hurts nothing', async (place) => {
    domain.troubles.set(lastFailure, 'error').set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    await endsInNothing(domain.app)
  })
})
