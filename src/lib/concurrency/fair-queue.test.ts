// The queue under any sequence of operations, and its fairness in a simulation where all work takes one tick.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFairQueue, type Entry, type FairQueue, type Capacity } from './fair-queue.ts'

type Ticket = Entry & { number: number }

const wide = { perOwner: Infinity, inAll: Infinity }
const roomy: Capacity = { places: Infinity, weight: Infinity }

type Step =
  | { do: 'join'; owner: string }
  | { do: 'admit'; room: Capacity }
  | { do: 'leave' | 'giveUpPlace'; which: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('join' as const), owner: fc.constantFrom('a', 'b', 'c') }),
  fc.record({
    do: fc.constant('admit' as const),
    room: fc.record({ places: fc.nat(4), weight: fc.integer({ min: -1, max: 6 }) }),
  }),
  fc.record({ do: fc.constantFrom('leave' as const, 'giveUpPlace' as const), which: fc.nat(50) }),
)

describe('the fair queue under random operations', () => {
  it('respects its limits, admits by capacity in order per owner, and loses no entry', () => {
    let [refused, kept] = [0, 0]
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = createFairQueue<Ticket>({ perOwner: 5, inAll: 9 })
        const waiting: Ticket[] = []
        const inside = new Set<Ticket>()
        const placed = new Set<Ticket>()
        let number = 0
        for (const taken of steps) {
          if (taken.do === 'join') {
            const ticket = { owner: taken.owner, weight: (number % 3) + 1, number: number++ }
            const own = waiting.filter(({ owner }) => owner === ticket.owner).length
            expect(queue.join(ticket)).toBe(own < 5 && waiting.length < 9)
            if (own < 5 && waiting.length < 9) waiting.push(ticket)
            else refused += 1
          } else if (taken.do === 'admit') {
            const { room } = taken
            let weight = [...inside].reduce((sum, ticket) => sum + ticket.weight, 0)
            for (const ticket of queue.admit(room)) {
              expect(placed.size).toBeLessThan(room.places)
              expect(weight).toBeLessThanOrEqual(room.weight)
              expect(ticket).toBe(waiting.find(({ owner }) => owner === ticket.owner))
              waiting.splice(waiting.indexOf(ticket), 1)
              inside.add(ticket)
              placed.add(ticket)
              weight += ticket.weight
            }
            // No entry waits that could be admitted.
            if (waiting.length > 0) kept += 1
            expect(waiting.length === 0 || placed.size >= room.places || weight > room.weight).toBe(true)
          } else {
            const all = [...waiting, ...inside]
            const ticket = all[taken.which % all.length]
            if (!ticket) continue
            placed.delete(ticket)
            if (taken.do === 'giveUpPlace') {
              queue.releasePlace(ticket)
            } else {
              queue.leave(ticket)
              inside.delete(ticket)
              if (waiting.includes(ticket)) waiting.splice(waiting.indexOf(ticket), 1)
            }
          }
          expect(queue.waiting()).toBe(waiting.length)
          expect(queue.weight()).toBe([...inside].reduce((sum, ticket) => sum + ticket.weight, 0))
          for (const ticket of waiting) expect(queue.isInside(ticket)).toBe(false)
          for (const ticket of inside) expect(queue.isInside(ticket)).toBe(true)
        }
        expect(new Set(queue.admit(roomy))).toEqual(new Set(waiting))
      }),
    )
    expect(refused).toBeGreaterThan(100)
    expect(kept).toBeGreaterThan(100)
  })
})

/** Runs work of one tick each. Returns the tick in which each owner finished. */
function runToEnd(queue: FairQueue<Ticket>, places: number): Map<string, number> {
  const through = new Map<string, number>()
  for (let tick = 1; queue.waiting() > 0; tick++) {
    for (const ticket of queue.admit({ places, weight: Infinity })) {
      through.set(ticket.owner, tick)
      queue.leave(ticket)
    }
  }
  return through
}

function fill(queue: FairQueue<Ticket>, owner: string, count: number): void {
  for (let number = 0; number < count; number++) queue.join({ owner, weight: 1, number })
}

describe('owners of the fair queue', () => {
  it('wait at most twice as long next to an owner with sixty entries', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 8 }), (few, places) => {
        const shared = createFairQueue<Ticket>(wide)
        fill(shared, 'many', 60)
        fill(shared, 'few', few)
        const alone = Math.ceil(few / places)
        expect(runToEnd(shared, places).get('few')).toBeLessThanOrEqual(2 * alone)
      }),
    )
  })

  it('are served in turn, for any number of owners', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 }), (counts) => {
        const queue = createFairQueue<Ticket>(wide)
        for (const [index, count] of counts.entries()) fill(queue, `owner-${index}`, count)
        const admitted = new Map<string, number>()
        while (queue.waiting() > 0) {
          for (const ticket of queue.admit({ places: 1, weight: Infinity })) {
            admitted.set(ticket.owner, (admitted.get(ticket.owner) ?? 0) + 1)
            queue.leave(ticket)
          }
          // No waiting owner is behind another by more than the current turn.
          const most = Math.max(...admitted.values())
          for (const [index, count] of counts.entries()) {
            const own = admitted.get(`owner-${index}`) ?? 0
            if (own < count) expect(own).toBeGreaterThanOrEqual(most - 1)
          }
        }
      }),
    )
  })

  it('with slow work do not occupy every place', () => {
    const queue = createFairQueue<Ticket>(wide)
    fill(queue, 'slow', 10)
    fill(queue, 'quick', 10)
    const room = { places: 4, weight: Infinity }
    let quick = 0
    for (let round = 0; round < 5; round++) {
      for (const ticket of queue.admit(room)) {
        if (ticket.owner !== 'quick') continue
        quick += 1
        queue.leave(ticket)
      }
    }
    // Two of the four places are occupied by slow work; the other two continue to serve quick work.
    expect(quick).toBe(10)
  })
})
