// Slots made in advance, so that a machine's start does not wait for the kernel to make a namespace.

import type { Log } from '../../../lib/log.ts'
import type { Slot } from './slots.ts'

export type SlotPool = {
  /** Returns a prepared slot; if none is left, the next one made. */
  take(): Promise<Slot>
  /** To be called now and then: a slot that is taken is not replaced at once. */
  refill(): void
  /** Stops making slots and returns the unused ones. */
  drain(): Promise<Slot[]>
}

const TARGET = 16
const AT_ONCE = 4
// Making slots uses CPU that starts need, so that only those who find fewer than this begin it.
const LEAST = 4

type Waiter = { resolve(slot: Slot): void; reject(error: unknown): void }

export function createPool(make: (count: number) => Promise<Slot[]>, log: Log): SlotPool {
  const ready: Slot[] = []
  const waiting: Waiter[] = []
  let filling: Promise<void> | null = null
  let closed = false

  const fill = async () => {
    while (!closed && (ready.length < TARGET || waiting.length > 0)) {
      for (const slot of await make(Math.max(AT_ONCE, waiting.length))) {
        const waiter = waiting.shift()
        if (waiter) waiter.resolve(slot)
        else ready.push(slot)
      }
    }
  }

  const refillFrom = (enough: number) => {
    if (closed || filling || (ready.length >= enough && waiting.length === 0)) return
    filling = fill()
      .catch((error: unknown) => {
        log.error({ err: error }, 'network slots cannot be made')
        for (const waiter of waiting.splice(0)) waiter.reject(error)
      })
      .finally(() => {
        filling = null
        // A waiter may have come after the last check of the queue.
        if (waiting.length > 0) refillFrom(LEAST)
      })
  }

  return {
    refill: () => refillFrom(TARGET - AT_ONCE + 1),
    take() {
      if (closed) return Promise.reject(new Error('the network is closed'))
      const slot = ready.shift()
      const taken = slot
        ? Promise.resolve(slot)
        : new Promise<Slot>((resolve, reject) => waiting.push({ resolve, reject }))
      refillFrom(LEAST)
      return taken
    },
    async drain() {
      closed = true
      await filling
      for (const waiter of waiting.splice(0)) waiter.reject(new Error('the network is closed'))
      return ready.splice(0)
    },
  }
}
