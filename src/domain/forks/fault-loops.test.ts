// A fault at every step of a fork (reliability F1, F2, F3, F23), as units/fault-loops.deep.test.ts does for a unit: all
// copies arrive or none does, and the sources stay as they were.

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
import { reconcileMachines, recover, resumeOperations } from '../units/reconcile.ts'
import { sleepUnit } from '../units/sleep.ts'
import { startUnit } from '../units/start.ts'
import { stopUnit } from '../units/stop.ts'
import { forkStack } from './fork-stack.ts'
import { forkSaga, resumeForks } from './run.ts'

const steps = forkSaga.steps.map(({ name }) => `fork.${name}`)
const sides = steps.flatMap((place) => [`${place}.before`, `${place}.after`])
/** A failure of the last step runs every undo. */
const lastFailure = 'fork.ready.after'
const undos = forkSaga.steps.filter(({ undo }) => undo).map(({ name }) => `fork.${name}.undo`)
const undoSides = undos.flatMap((place) => [`${place}.before`, `${place}.after`])
const asked: { operation: Operation; when: 'before' | 'after' }[] = (
  ['fork', 'start', 'exec'] as const
).flatMap((operation) => (['before', 'after'] as const).map((when) => ({ operation, when })))
/** The states of the copies once they have arrived. */
const arrived = { db: 'running', job: 'stopped', lazy: 'sleeping', web: 'running' }
const sources = ['db', 'job', 'lazy', 'web']
/** The jobs that repair what a fault left. */
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
  expect([...domain.faults.keys()], 'trouble that was never met').toEqual([])
  domain.faults.clear()
  await domain.app.db.deleteFrom('units').execute()
  await domain.app.db.deleteFrom('forks').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

const met = async (place: string) =>
  await expect.poll(() => domain.faults.has(place), { interval: 1 }).toBe(false)
const act = async (app = domain.app) =>
  await forkStack(app, caller, 'shop', stackForkSchema.parse({ into: 'trial' }))

/** Also finds units of a stack that was deleted and has no list any more. */
async function unitsOf(stack: string): Promise<Unit[]> {
  const { units } = await listUnits(domain.app, caller, { all: true, limit: 100 })
  return units.toReversed().filter(({ internalHost }) => internalHost.endsWith(`.${stack}.internal`))
}
const statesOf = (units: Unit[]) => Object.fromEntries(units.map(({ name, state }) => [name, state]))

/** Each copy runs with the disk of its source, and can be destroyed like any unit. */
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

/** Only rows that give the reason are left, and the sources are unchanged. */
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

/** The server dies and starts again. */
async function restart(): Promise<App> {
  const app = domain.restarted()
  await recover(app)
  return app
}

describe('a fork whose server crashes', () => {
  it.each(sides)('at %s completes after the restart', async (place) => {
    domain.faults.set(place, 'crash')
    act().catch(() => {})
    await met(place)
    await endsWell(await restart())
  })

  it.each(undoSides)('at %s leaves nothing after the restart', async (place) => {
    domain.faults.set(lastFailure, 'error').set(place, 'crash')
    act().catch(() => {})
    await met(place)
    await endsInNothing(await restart())
  })
})

describe('a fork that meets an error', () => {
  it.each(sides)('at %s leaves nothing, and fails with 502', async (place) => {
    domain.faults.set(place, 'error')
    await expect(act()).rejects.toMatchObject({ status: 502, details: { unitIds: expect.any(Array) } })
    // By then an operation that fails has undone all its steps.
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
    await endsInNothing(domain.app)
  })

  it.each(undoSides)('at %s is cleaned up by the reconciler', async (place) => {
    domain.faults.set(lastFailure, 'error').set(place, 'error')
    await expect(act()).rejects.toMatchObject({ status: 502 })
    await endsInNothing(domain.app)
  })

  it.each(asked)(
    'of the engine $when $operation leaves nothing, and fails with 502',
    async ({ operation, when }) => {
      domain.engine.fail(operation, 'internal', { when })
      await expect(act()).rejects.toMatchObject({ status: 502 })
      await endsInNothing(domain.app)
    },
  )

  it.each(asked)(
    'as the engine restarts $when $operation completes all the same',
    async ({ operation, when }) => {
      domain.engine.fail(operation, 'engine_away', { when })
      const waiting = setInterval(() => domain.clock.advance(SECOND / 4), 2)
      await act().finally(() => clearInterval(waiting))
      await endsWell(domain.app)
    },
  )
})

describe('a fork with a step that is run twice', () => {
  it.each(steps)('at %s has the same result', async (place) => {
    domain.faults.set(place, 'twice')
    const { copied } = await act()
    expect(copied).toEqual({ db: 'memory', job: 'disk', lazy: 'disk', web: 'memory' })
    await endsWell(domain.app)
  })

  it.each(undos)('at %s leaves nothing', async (place) => {
    domain.faults.set(lastFailure, 'error').set(place, 'twice')
    await expect(act()).rejects.toMatchObject({ status: 502 })
    await endsInNothing(domain.app)
  })
})

describe('a fork that hangs', () => {
  it.each(sides)('at %s does not block other units', async (place) => {
    domain.faults.set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    const neighbour = await domain.makeCaller()
    const { id } = await makeUnit(domain.app, neighbour)
    await destroyUnit(domain.app, neighbour, id)
    for (const { id: own } of await unitsOf('shop')) await destroyUnit(domain.app, caller, own)
  })

  it.each(sides)('at %s does not keep its copies from being destroyed', async (place) => {
    domain.faults.set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    await destroyStack(domain.app, caller, 'trial')
    domain.clock.advance(HOUR)
    await settle(domain, domain.app, loops)
    expect(new Set((await unitsOf('trial')).map(({ state }) => state))).toEqual(new Set(['destroyed']))
    await sourcesAreWell(domain.app)
  })

  it.each(sides)('at %s completes after its timeout', async (place) => {
    domain.faults.set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    domain.clock.advance(HOUR / 2)
    await endsWell(domain.app)
  })

  it.each(undoSides)('at %s leaves nothing', async (place) => {
    domain.faults.set(lastFailure, 'error').set(place, 'hang')
    void act().catch(() => {})
    await met(place)
    await endsInNothing(domain.app)
  })
})
