// Wakes under load: during hibernation, with hundreds of callers, on a host that hangs.

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../../test/support/domain.ts'
import { countStatements } from '../../../../test/support/statements.ts'
import type { Unit } from '../../../contract/unit.ts'
import type { Caller } from '../../credentials/caller.ts'
import { execInUnit } from '../exec.ts'
import { hibernateUnit } from './hibernate.ts'
import { getRecord, getUnit } from '../get.ts'
import { sleepUnit } from '../sleep.ts'
import { wakeUnit } from './wake.ts'

let domain: TestDomain
let caller: Caller

const settle = async (ms = 20) => await new Promise((resolve) => setTimeout(resolve, ms))
const run = async ({ id }: Unit) =>
  await execInUnit(domain.app, caller, id, { cmd: ['true'], timeoutMs: 5_000 })
const asleep = async ({ id }: Unit) =>
  await sleepUnit(domain.app, caller, id, { sleep: '1m', stack: false, now: true })
const outcomes = async (calls: Promise<unknown>[]) => {
  const counts: Record<string, number> = {}
  for (const outcome of await Promise.allSettled(calls)) {
    const what = outcome.status === 'fulfilled' ? 'answered' : String(outcome.reason)
    counts[what] = (counts[what] ?? 0) + 1
  }
  return counts
}

beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
})
afterEach(async () => {
  await domain.app.db.deleteFrom('units').execute()
  await domain.engine.recover([])
})
afterAll(async () => await domain.close())

it('a unit that is being hibernated is started once its machine is down, and not thawed', async () => {
  const unit = await makeUnit(domain.app, caller)
  await asleep(unit)
  const frozen = await getRecord(domain.app, caller, unit.id)
  const release = domain.engine.hang('stop')
  const cooling = hibernateUnit(domain.app, frozen)
  await expect.poll(async () => (await getRecord(domain.app, caller, unit.id)).frozen).toBe(false)
  await wakeUnit(domain.app, caller, frozen)
  const woken = run(unit)
  await settle()
  release()
  await cooling
  await woken
  const [machine] = domain.engine.machines()
  expect(machine).toMatchObject({ id: unit.id, state: 'running', generation: 2 })
  expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({ state: 'running' })
})

it('a stack that sleeps together accepts commands for all its units at once', async () => {
  const units: Unit[] = []
  for (const name of ['a', 'b', 'c']) units.push(await makeUnit(domain.app, caller, { name }, { stack: 's' }))
  await sleepUnit(domain.app, caller, units[0]?.id ?? '', { sleep: '5m', stack: true, now: false })
  for (let round = 0; round < 10; round++) {
    const calls = units.flatMap((unit) => Array.from({ length: 10 }, () => run(unit)))
    expect(await outcomes(calls)).toEqual({ answered: 30 })
  }
})

it('a thousand calls can wait for one unit, and further ones are told to retry', async () => {
  const unit = await makeUnit(domain.app, caller)
  await asleep(unit)
  const release = domain.engine.hang('thaw')
  const statements = countStatements()
  const calls = outcomes(Array.from({ length: 1100 }, () => run(unit)))
  await expect.poll(() => domain.app.activity.waiters.of(unit.id)).toBe(1000)
  // They read the unit two or three times for all, and one of them wakes it.
  expect(statements()).toBeLessThan(20)
  release()
  const result = await calls
  expect(result['answered']).toBe(1000)
  expect(Object.keys(result).filter((what) => what !== 'answered')).toEqual([
    expect.stringContaining('Too many calls wait for this unit'),
  ])
  expect(domain.app.activity.waiters.ids()).toEqual([])
  expect(domain.app.activity.uses.ids()).toEqual([])
})

it('a call waits 45 seconds for a unit that is slow to wake, and is then told to retry', async () => {
  const unit = await makeUnit(domain.app, caller)
  await asleep(unit)
  const release = domain.engine.hang('thaw')
  const first = expect(run(unit)).rejects.toMatchObject({ status: 503, retryAfterS: 5 })
  await eventually(domain.app, caller, unit.id, 'starting')
  const second = expect(run(unit)).rejects.toMatchObject({ status: 503, retryAfterS: 5 })
  await expect.poll(() => domain.app.activity.waiters.of(unit.id)).toBe(2)
  domain.clock.advance(45_001)
  await Promise.all([first, second])
  release()
  expect((await run(unit)).exitCode).toBe(0)
})

it('a call waits ten seconds for a unit that is being created, and is then told what to poll', async () => {
  const release = domain.engine.hang('pull')
  const unit = await makeUnit(domain.app, caller, {}, { wait: false })
  const refused = expect(run(unit)).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining(
      `still being created: wait until GET /v1/units/${unit.id} says "running"`,
    ),
  })
  await expect.poll(() => domain.app.activity.waiters.of(unit.id)).toBe(1)
  domain.clock.advance(10_001)
  await refused
  release()
  await eventually(domain.app, caller, unit.id, 'running')
  expect((await run(unit)).exitCode).toBe(0)
})

it('a call to a unit that could not be created gets the reason', async () => {
  domain.engine.fail('pull', 'image_not_found')
  const broken = await makeUnit(domain.app, caller, { image: 'nothing:1' }, { wait: false })
  await eventually(domain.app, caller, broken.id, 'error')
  await expect(run(broken)).rejects.toMatchObject({
    status: 409,
    message: expect.stringMatching(/^The unit is error, so .* Image "nothing:1"/),
  })
})

it('calls that wait for another process to wake their unit poll for it together', async () => {
  const unit = await makeUnit(domain.app, caller)
  await asleep(unit)
  const release = domain.engine.hang('thaw')
  const elsewhere = domain.restarted()
  const waking = execInUnit(elsewhere, caller, unit.id, { cmd: ['true'], timeoutMs: 5_000 })
  await eventually(domain.app, caller, unit.id, 'starting')
  const calls = Array.from({ length: 200 }, () => run(unit))
  await expect.poll(() => domain.app.activity.waiters.of(unit.id)).toBe(200)
  const statements = countStatements()
  await settle(1000)
  // One query every quarter of a second.
  expect(statements()).toBeLessThan(12)
  release()
  await waking
  expect(await outcomes(calls)).toEqual({ answered: 200 })
})
