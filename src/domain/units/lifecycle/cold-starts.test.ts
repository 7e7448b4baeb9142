// Cold starts by the free memory of the host: which unit starts, which waits, and what happens to those that cannot
// start.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTestDomain, eventually, makeUnit, type TestDomain } from '../../../../test/support/domain.ts'
import type { Unit } from '../../../contract/unit.ts'
import { LIMIT_REACHED } from '../../../lib/limit-reached.ts'
import type { Caller } from '../../credentials/caller.ts'
import { execInUnit } from '../exec.ts'
import { getUnit } from '../get.ts'
import { giveMemoryBack } from '../activity/idle.ts'
import { sleepUnit } from '../sleep.ts'
import { startUnit } from '../start.ts'
import { stopUnit } from '../stop.ts'

let domain: TestDomain
let caller: Caller

const settle = async (ms = 20) => await new Promise((resolve) => setTimeout(resolve, ms))
const run = async ({ id }: Unit, as = caller) =>
  await execInUnit(domain.app, as, id, { cmd: ['true'], timeoutMs: 5_000 })
const machineOf = ({ id }: Unit) => domain.engine.machines().find((machine) => machine.id === id)
const asleep = async (unit: Unit, as = caller) => {
  await sleepUnit(domain.app, as, unit.id, { sleep: '1m', stack: false, now: true })
}
const calls = (operation: string) => domain.engine.calls.filter((call) => call.operation === operation).length
const starts = () => calls('start')

/** Sets the free memory of the host for the next reading. */
function hostHas(availableMemoryMb: number): void {
  domain.engine.setCapacity({ availableMemoryMb })
  domain.clock.advance(1001)
}

/** Advances the clock until the promise settles. */
async function during<T>(work: Promise<T>): Promise<T> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  work.then(over, over)
  while (!isOver) {
    domain.clock.advance(300)
    await settle(5)
  }
  return await work
}

async function makeSleeping(count: number, as = caller): Promise<Unit[]> {
  const units: Unit[] = []
  for (let made = 0; made < count; made++) {
    const unit = await makeUnit(domain.app, as, { name: `unit-${made}` })
    await asleep(unit, as)
    units.push(unit)
  }
  return units
}

function setUp(frozenFor: string): void {
  beforeAll(async () => {
    domain = await createTestDomain({ BERTH_FROZEN_FOR: frozenFor, BERTH_MEMORY_RESERVE_MB: '512' })
  })
  beforeEach(async () => {
    caller = await domain.makeCaller()
  })
  afterEach(async () => {
    hostHas(65_536)
    domain.engine.heal('start')
    domain.engine.heal('capacity')
    await domain.app.db.deleteFrom('units').execute()
    await domain.app.db.deleteFrom('stacks').execute()
    await domain.engine.recover([])
  })
  afterAll(async () => await domain.close())
}

describe('while memory is short', () => {
  setUp('0s')

  it('a waking unit waits until there is memory', async () => {
    const [unit] = await makeSleeping(1)
    if (!unit) throw new Error('one was made')
    hostHas(500)
    const woken = run(unit)
    await eventually(domain.app, caller, unit.id, 'starting')
    domain.clock.advance(10_000)
    await settle()
    expect(machineOf(unit)).toMatchObject({ state: 'exited' })
    domain.engine.setCapacity({ availableMemoryMb: 512 })
    expect((await during(woken)).exitCode).toBe(0)
  })

  it('a unit that waited half a minute stays asleep, and its call is told to retry', async () => {
    const [unit] = await makeSleeping(1)
    if (!unit) throw new Error('one was made')
    hostHas(500)
    const refused = expect(run(unit)).rejects.toMatchObject({
      status: 503,
      code: 'unavailable',
      retryAfterS: 10,
    })
    await during(refused)
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'provider',
      error: expect.stringContaining('no memory to spare'),
    })
    hostHas(65_536)
    expect((await run(unit)).exitCode).toBe(0)
  })

  it('a unit whose start is refused stays stopped', async () => {
    const unit = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, unit.id)
    hostHas(500)
    const refused = expect(startUnit(domain.app, caller, unit.id)).rejects.toMatchObject({ status: 503 })
    await during(refused)
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'stopped',
      stoppedReason: 'user',
    })
  })

  it('a create is refused before it makes anything, and a warning is logged', async () => {
    const warn = vi.spyOn(domain.app.log, 'warn')
    hostHas(500)
    const refused = expect(makeUnit(domain.app, caller)).rejects.toMatchObject({ status: 503 })
    await during(refused)
    expect(await domain.app.db.selectFrom('units').select('id').execute()).toEqual([])
    expect(await domain.app.db.selectFrom('stacks').select('id').execute()).toEqual([])
    const told = { bound: 'memory of the host', by: caller.teamId, times: 1 }
    expect(warn).toHaveBeenCalledWith(told, LIMIT_REACHED)
    warn.mockRestore()
  })

  it('a create that was admitted before ends in error and leaves no machine', async () => {
    const release = domain.engine.hang('pull')
    const before = calls('pull')
    const making = makeUnit(domain.app, caller)
    const refused = expect(making).rejects.toMatchObject({ status: 502, code: 'provider_error' })
    await expect.poll(() => calls('pull')).toBe(before + 1)
    hostHas(500)
    release()
    await during(refused)
    const { id } = await domain.app.db.selectFrom('units').select('id').executeTakeFirstOrThrow()
    expect(await getUnit(domain.app, caller, id)).toMatchObject({
      state: 'error',
      error: expect.stringContaining('no memory to spare'),
    })
    expect(domain.engine.machines()).toEqual([])
  })

  it('memory that is reserved for starts in progress is not given to others', async () => {
    const units = await makeSleeping(3)
    // 512 in reserve, and one of them (512 each) uses up the rest while it starts.
    hostHas(1000)
    const release = domain.engine.hang('start', { times: 2 })
    const before = starts()
    const woken = Promise.all(units.map((unit) => run(unit)))
    for (const unit of units) await eventually(domain.app, caller, unit.id, 'starting')
    await settle(50)
    expect(starts() - before).toBe(1)
    release()
    expect((await during(woken)).map(({ exitCode }) => exitCode)).toEqual([0, 0, 0])
  })

  it('and its amount cannot be read, two units start at a time', async () => {
    const units = await makeSleeping(5)
    domain.clock.advance(1001)
    domain.engine.fail('capacity', 'internal', { times: 1000 })
    const release = domain.engine.hang('start', { times: 5 })
    const before = starts()
    const woken = Promise.all(units.map((unit) => run(unit)))
    for (const unit of units) await eventually(domain.app, caller, unit.id, 'starting')
    await settle(50)
    expect(starts() - before).toBe(2)
    release()
    await woken
  })

  it('and reading its amount hangs, a unit starts all the same', async () => {
    const [unit] = await makeSleeping(1)
    if (!unit) throw new Error('one was made')
    domain.clock.advance(1001)
    const release = domain.engine.hang('capacity', { times: 1 })
    expect((await during(run(unit))).exitCode).toBe(0)
    release()
  })
})

describe('frozen units', () => {
  setUp('10m')

  it('wake also when memory is short, because theirs is in use already', async () => {
    const [unit] = await makeSleeping(1)
    if (!unit) throw new Error('one was made')
    hostHas(100)
    expect((await run(unit)).exitCode).toBe(0)
  })

  it('are stopped to give memory to a start that waits', async () => {
    const frozen = await makeSleeping(2)
    const unit = await makeUnit(domain.app, caller, { name: 'other' })
    await stopUnit(domain.app, caller, unit.id)
    hostHas(500)
    const started = startUnit(domain.app, caller, unit.id)
    await eventually(domain.app, caller, unit.id, 'starting')
    await giveMemoryBack(domain.app)
    for (const each of frozen) expect(machineOf(each)).toMatchObject({ state: 'exited' })
    domain.engine.setCapacity({ availableMemoryMb: 1200 })
    expect((await during(started)).state).toBe('running')
  })

  it('are not stopped while there is enough memory', async () => {
    const [frozen] = await makeSleeping(1)
    if (!frozen) throw new Error('one was made')
    hostHas(600)
    await giveMemoryBack(domain.app)
    expect(machineOf(frozen)).toMatchObject({ frozen: true })
  })
})

describe('many cold starts', () => {
  setUp('0s')

  it('run a few at a time, and one that hangs does not block the rest', async () => {
    const units = await makeSleeping(6)
    domain.clock.advance(1001)
    const release = domain.engine.hang('start', { times: 4 })
    const before = starts()
    const woken = units.map((unit) => run(unit))
    for (const unit of units) await eventually(domain.app, caller, unit.id, 'starting')
    await settle(50)
    // Two for each CPU.
    expect(starts() - before).toBe(4)
    domain.clock.advance(2001)
    await Promise.any(woken)
    await expect.poll(() => starts() - before).toBe(6)
    release()
    await Promise.all(woken)
  })

  it('of one team leave another team its turn', async () => {
    const many = await makeSleeping(12)
    const other = await domain.makeCaller()
    const few = await makeSleeping(3, other)
    domain.clock.advance(1001)
    const release = domain.engine.hang('start', { times: 4 })
    const before = starts()
    const herd = many.map((unit) => run(unit))
    for (const unit of many) await eventually(domain.app, caller, unit.id, 'starting')
    const woken = few.map((unit) => run(unit, other))
    for (const unit of few) await eventually(domain.app, other, unit.id, 'starting')
    release()
    await Promise.all([...woken, ...herd])
    const order = domain.engine.calls.filter(({ operation }) => operation === 'start').slice(before)
    // Four had their slots before, and from then on at least every other start is of the other team.
    const last = order.findLastIndex(({ id }) => few.some((unit) => unit.id === id))
    expect(last).toBeLessThan(4 + 2 * few.length)
  })

  it('are refused at once when the queue is full, and leave their unit as it was', async () => {
    const [unit] = await makeSleeping(1)
    if (!unit) throw new Error('one was made')
    hostHas(500)
    const queued = Array.from({ length: 200 }, () =>
      domain.app
        .coldStarts(domain.app.fleet.local().id)
        .run({ owner: caller.teamId, weight: 1 }, async () => {}),
    )
    await expect(run(unit)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    expect(await getUnit(domain.app, caller, unit.id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'idle',
    })
    await expect(makeUnit(domain.app, caller, { name: 'new' })).rejects.toMatchObject({ status: 503 })
    hostHas(65_536)
    await Promise.all(queued)
    await run(unit)
    await eventually(domain.app, caller, unit.id, 'running')
  })
})
