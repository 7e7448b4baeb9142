import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import type { Capacity } from './fair-queue.ts'
import { createAdmissionQueue, AdmissionRejected, type AdmissionQueueOptions } from './admission-queue.ts'

const settle = async (ms = 5) => await new Promise((resolve) => setTimeout(resolve, ms))

function world(options: Partial<AdmissionQueueOptions> = {}) {
  const clock = createTestClock()
  const room: { now: Capacity | null } = { now: { places: 2, weight: 1000 } }
  const queue = createAdmissionQueue({
    clock,
    capacity: async () => room.now,
    bounds: { perOwner: 100, inAll: 100 },
    maxWaitMs: 30_000,
    slowMs: 2000,
    releaseDelayMs: 1000,
    ...options,
  })
  const begun: string[] = []
  /** Queues work that ends when the test says so. */
  const pass = (name: string, { owner = 'team', weight = 1 } = {}) => {
    const work = Promise.withResolvers<void>()
    const done = queue.run({ owner, weight }, async () => {
      begun.push(name)
      await work.promise
    })
    return { done, end: work.resolve, fail: work.reject }
  }
  return { clock, room, queue, begun, pass }
}

describe('the admission queue', () => {
  it('runs as much work as there are places and starts the next when one ends', async () => {
    const { begun, pass } = world()
    const [first] = ['a', 'b', 'c'].map((name) => pass(name))
    await settle()
    expect(begun).toEqual(['a', 'b'])
    first?.end()
    await first?.done
    await settle()
    expect(begun).toEqual(['a', 'b', 'c'])
  })

  it('starts the next work when running work takes too long', async () => {
    const { clock, begun, pass } = world()
    for (const name of ['a', 'b', 'c']) pass(name)
    await settle()
    clock.advance(2001)
    await settle()
    expect(begun).toEqual(['a', 'b', 'c'])
  })

  it('frees the place of work that fails and rejects its promise', async () => {
    const { begun, pass } = world()
    const [first] = ['a', 'b', 'c'].map((name) => pass(name))
    await settle()
    first?.fail(new Error('broke'))
    await expect(first?.done).rejects.toThrow('broke')
    await settle()
    expect(begun).toEqual(['a', 'b', 'c'])
  })

  it('waits until external capacity is available', async () => {
    const { clock, room, begun, pass, queue } = world()
    room.now = { places: 2, weight: -1 }
    pass('a')
    await settle()
    clock.advance(10_000)
    await settle()
    expect(begun).toEqual([])
    expect(await queue.hasCapacity()).toBe(false)
    room.now = { places: 2, weight: 0 }
    clock.advance(300)
    await settle()
    expect(begun).toEqual(['a'])
    expect(await queue.isOverloaded()).toBe(false)
  })

  it('counts the weight of finished work until the release delay has passed', async () => {
    const { clock, room, begun, pass } = world()
    room.now = { places: 2, weight: 500 }
    const heavy = pass('heavy', { weight: 501 })
    await settle()
    pass('next')
    heavy.end()
    await heavy.done
    await settle()
    expect(begun).toEqual(['heavy'])
    clock.advance(1001)
    await settle()
    clock.advance(300)
    await settle()
    expect(begun).toEqual(['heavy', 'next'])
  })

  it('is overloaded only after running work has blocked the queue for longer than expected', async () => {
    const { clock, queue, pass } = world()
    const heavy = pass('heavy', { weight: 1001 })
    await settle()
    pass('next')
    await settle()
    expect([await queue.hasCapacity(), await queue.isOverloaded()]).toEqual([false, false])
    for (let step = 0; step < 5; step++) {
      clock.advance(300)
      await settle()
    }
    expect(await queue.isOverloaded()).toBe(true)
    heavy.end()
  })

  it('rejects work that has waited too long and then admits the next', async () => {
    const { clock, room, begun, pass } = world()
    room.now = { places: 2, weight: -1 }
    const late = pass('late')
    await settle()
    clock.advance(20_000)
    await settle()
    pass('patient')
    clock.advance(10_001)
    await expect(late.done).rejects.toMatchObject({ reason: 'late' })
    room.now = { places: 2, weight: 0 }
    clock.advance(300)
    await settle()
    expect(begun).toEqual(['patient'])
  })

  it('rejects work at once when the queue is full, with a retry delay based on recent durations', async () => {
    const { clock, pass } = world({ bounds: { perOwner: 2, inAll: 100 } })
    const running = [pass('a'), pass('b')]
    await settle()
    pass('c')
    pass('d')
    const refused = await pass('e').done.catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(AdmissionRejected)
    const other = pass('other', { owner: 'other' })
    clock.advance(1900)
    for (const each of running) each.end()
    await Promise.all(running.map(({ done }) => done))
    await settle()
    pass('f')
    const later = await pass('g').done.catch((error: unknown) => error)
    expect(later).toMatchObject({ reason: 'full' })
    expect((later as AdmissionRejected).retryAfterMs).toBeGreaterThan(
      (refused as AdmissionRejected).retryAfterMs,
    )
    other.end()
  })

  it('admits a few at a time when the capacity is unknown', async () => {
    const { room, begun, pass } = world()
    room.now = null
    for (const name of ['a', 'b', 'c']) pass(name)
    await settle()
    expect(begun).toEqual(['a', 'b'])
  })

  it('never exceeds its places and eventually runs all work', async () => {
    let waited = 0
    const job = fc.record({ owner: fc.constantFrom('a', 'b', 'c'), turns: fc.nat(3), fails: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(
        fc.array(job, { maxLength: 30 }),
        fc.integer({ min: 1, max: 4 }),
        async (jobs, places) => {
          const { room, queue } = world({ releaseDelayMs: 0 })
          room.now = { places, weight: 1000 }
          let inside = 0
          waited += Math.max(0, jobs.length - places)
          const outcomes = await Promise.allSettled(
            jobs.map(({ owner, turns, fails }) =>
              queue.run({ owner, weight: 1 }, async () => {
                inside += 1
                expect(inside).toBeLessThanOrEqual(places)
                for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
                inside -= 1
                if (fails) throw new Error('broke')
              }),
            ),
          )
          expect(outcomes.map(({ status }) => status)).toEqual(
            jobs.map(({ fails }) => (fails ? 'rejected' : 'fulfilled')),
          )
        },
      ),
      { numRuns: 50 },
    )
    expect(waited).toBeGreaterThan(100)
  })
})
