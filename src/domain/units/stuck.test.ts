// Units whose operation lost its process, or whose process hangs (reliability F24): the next process completes the
// operation, and a late end of the hanging call does no harm.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { isTransitional } from '../../contract/states.ts'
import type { Unit } from '../../contract/unit.ts'
import type { Operation } from '../../../test/support/fake-engine/faults.ts'
import type { App } from '../../app.ts'
import { startJobs } from '../../jobs.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { getUnit } from './get.ts'
import { sleepIdleUnits } from './activity/idle.ts'
import { reconcileMachines, resumeOperations } from './reconcile.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'

const MINUTE = 60_000

let domain: TestDomain
let caller: Caller
let app: App
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  app = domain.restarted()
  caller = await domain.makeCaller()
})
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

const settle = async () => await new Promise((resolve) => setTimeout(resolve, 20))
const machineOf = (id: string) => domain.engine.machines().find((machine) => machine.id === id)
const callsOf = (operation: Operation) =>
  domain.engine.calls.filter((call) => call.operation === operation).length
const use = async (id: string) => await execInUnit(app, caller, id, { cmd: ['true'], timeoutMs: 1_000 })

async function fallAsleep({ id }: Unit): Promise<void> {
  domain.clock.advance(2 * MINUTE)
  await sleepIdleUnits(app)
  await eventually(app, caller, id, 'sleeping')
}

type Case = {
  state: Unit['state']
  /** The engine call that hangs. */
  operation: Operation
  /** Begins the operation, and does not wait for it. */
  go: (unit: Unit) => Promise<unknown>
  before?: (unit: Unit) => Promise<unknown>
  ends: Unit['state']
  /** The operation takes no longer than this. */
  withinMinutes: number
}

const cases: Case[] = [
  {
    state: 'stopping',
    operation: 'stop',
    go: async ({ id }) => await stopUnit(app, caller, id),
    ends: 'stopped',
    withinMinutes: 8,
  },
  {
    state: 'stopping',
    operation: 'freeze',
    go: async () => {
      domain.clock.advance(2 * MINUTE)
      await sleepIdleUnits(app)
    },
    ends: 'sleeping',
    withinMinutes: 8,
  },
  {
    state: 'starting',
    operation: 'start',
    before: async ({ id }) => await stopUnit(app, caller, id),
    go: async ({ id }) => await startUnit(app, caller, id),
    ends: 'running',
    withinMinutes: 35,
  },
  {
    state: 'starting',
    operation: 'thaw',
    before: fallAsleep,
    go: async ({ id }) => await use(id),
    ends: 'running',
    withinMinutes: 35,
  },
  {
    state: 'destroying',
    operation: 'destroy',
    go: async ({ id }) => await destroyUnit(app, caller, id),
    ends: 'destroyed',
    withinMinutes: 3,
  },
]

/** A unit that hangs in its transitional state, and a function that lets the hanging call go on. */
async function hangIn({ state, operation, before, go }: Case): Promise<{ unit: Unit; release: () => void }> {
  const unit = await makeUnit(app, caller, { sleep: '1m' })
  await before?.(unit)
  const release = domain.engine.hang(operation)
  void go(unit).catch(() => {})
  await eventually(app, caller, unit.id, state)
  const calls = callsOf(operation)
  await expect.poll(() => callsOf(operation)).toBeGreaterThanOrEqual(calls)
  return { unit, release }
}

describe.each(cases)('a unit left $state at $operation', (one) => {
  const { operation, ends, withinMinutes } = one

  it('by a process that died is resumed by the next process', async () => {
    const { unit } = await hangIn(one)
    await resumeOperations(domain.restarted())
    await eventually(app, caller, unit.id, ends)
  })

  it('by a process that hangs is resumed after its timeout, and not before', async () => {
    const { unit } = await hangIn(one)
    await expect.poll(() => callsOf(operation)).toBeGreaterThan(0)
    const calls = callsOf(operation)
    domain.clock.advance(MINUTE)
    await resumeOperations(app)
    await settle()
    expect(callsOf(operation)).toBe(calls)
    domain.clock.advance(withinMinutes * MINUTE)
    await resumeOperations(app)
    await eventually(app, caller, unit.id, ends)
  })

  it.each(['succeeds', 'fails'] as const)('is not harmed when the hanging call %s later', async (how) => {
    const { unit, release } = await hangIn(one)
    await resumeOperations(domain.restarted())
    await eventually(app, caller, unit.id, ends)
    if (ends === 'stopped') await startUnit(domain.restarted(), caller, unit.id)
    app = domain.restarted()
    if (ends === 'sleeping') await use(unit.id)
    const inMemory = machineOf(unit.id)

    if (how === 'fails') domain.engine.fail(operation, 'timeout', { when: 'after' })
    release()
    await settle()
    domain.clock.advance(11_000)
    await reconcileMachines(app)
    const after = await getUnit(app, caller, unit.id)
    expect(isTransitional(after.state)).toBe(false)
    expect(after.state).toBe(ends === 'destroyed' ? 'destroyed' : 'running')
    expect(machineOf(unit.id)).toEqual(inMemory)
    domain.engine.heal(operation)
  })
})

describe('a unit left creating', () => {
  it.each(['pull', 'create', 'start'] as const)(
    'by a process that hangs in %s is resumed after its timeout, and not harmed later',
    async (operation) => {
      const release = domain.engine.hang(operation)
      const unit = await makeUnit(app, caller, {}, { wait: false })
      await expect.poll(() => domain.engine.calls.at(-1)).toMatchObject({ operation })
      domain.clock.advance(80 * MINUTE)
      await resumeOperations(app)
      await eventually(app, caller, unit.id, 'running')
      const machine = machineOf(unit.id)
      release()
      await settle()
      expect((await getUnit(app, caller, unit.id)).state).toBe('running')
      expect(machineOf(unit.id)).toEqual(machine)
      expect(domain.engine.machines()).toHaveLength(1)
    },
  )

  it('by a process that hangs leaves nothing when it is destroyed and the process goes on', async () => {
    const release = domain.engine.hang('create')
    const unit = await makeUnit(app, caller, {}, { wait: false })
    await expect.poll(() => domain.engine.calls.at(-1)).toMatchObject({ operation: 'create' })
    await destroyUnit(app, caller, unit.id)
    release()
    await expect.poll(() => domain.engine.calls.at(-1)).toMatchObject({ operation: 'destroy' })
    await expect.poll(() => domain.engine.machines()).toEqual([])
  })
})

it('a job that hangs in the engine does not keep its next runs from happening', async () => {
  const unit = await makeUnit(app, caller)
  domain.engine.hang('list')
  const lists = callsOf('list')
  const loops = startJobs(app)
  await expect.poll(() => callsOf('list')).toBeGreaterThan(lists)
  // No event reports this one: a run of the job finds it, or nothing does.
  await domain.engine.destroy(unit.id)
  const found = async () => {
    domain.clock.advance(5_000)
    return (await getUnit(app, caller, unit.id)).state
  }
  await expect.poll(found, { timeout: 20_000 }).toBe('sleeping')
  await loops.stop()
}, 30_000)
