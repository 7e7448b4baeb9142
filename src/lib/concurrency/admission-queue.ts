// Admission control: a fair, bounded queue that starts work while a slot and capacity are available. Capacity can only
// be polled, so it is polled while anyone waits; if it is unknown, two at a time are admitted.

import { type Clock, SECOND } from '../clock.ts'
import { completesWithin } from './completes-within.ts'
import { createFairQueue, type Entry, type QueueBounds, type Capacity } from './fair-queue.ts'

export type AdmissionQueueOptions = {
  clock: Clock
  /** Resolves to null if it is unknown. Must always resolve soon (lib/concurrency/ttl-cache.ts). */
  capacity: () => Promise<Capacity | null>
  bounds: QueueBounds
  maxWaitMs: number
  /** Work that takes longer gives up its place and goes on, so that work that hangs blocks nothing. */
  slowMs: number
  /** How long the weight of finished work still counts: until the next measurement includes what it used. */
  releaseDelayMs: number
}

export type AdmissionQueue = {
  /** Runs the work when it is admitted. Throws AdmissionRejected if it is not admitted in time. */
  run<T>(entry: Entry, work: () => Promise<T>): Promise<T>
  /** Returns how long until one more entry of the owner may wait; null if it may now. */
  fullForMs(owner: string): number | null
  /** How many entries wait. */
  waiting(): number
  /** Whether the capacity allows one more. True if it is unknown. */
  hasCapacity(): Promise<boolean>
  /** Whether there is no capacity, or the entries that wait have lacked it for a while. False if it is unknown. */
  isOverloaded(): Promise<boolean>
}

export class AdmissionRejected extends Error {
  /** `full`: the queue was full. `late`: it waited for the longest allowed time. */
  readonly reason: 'full' | 'late'
  /** The estimated time until the entries before it are done, from the recent durations. */
  readonly retryAfterMs: number

  constructor(reason: AdmissionRejected['reason'], retryAfterMs: number) {
    super(reason === 'full' ? 'the queue is full' : 'no capacity became free in time')
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

type Waiter = Entry & { turn: PromiseWithResolvers<void> }

const ASK_AGAIN_MS = SECOND / 4
/** The least estimate, since work in progress may end at any time. */
const A_WHILE_MS = SECOND
/** Used while the capacity is unknown. */
const DEFAULT_CAPACITY: Capacity = { places: 2, weight: Infinity }
/** The weight of the newest duration in the average. */
const NEWEST = 0.2

export function createAdmissionQueue(options: AdmissionQueueOptions): AdmissionQueue {
  const { clock, capacity, bounds, maxWaitMs, slowMs, releaseDelayMs } = options
  const queue = createFairQueue<Waiter>(bounds)
  let isAdmitting = false
  let somethingChanged = false
  let places = DEFAULT_CAPACITY.places
  let lackingSinceMs = Infinity
  let usualMs = SECOND / 4

  const readCapacity = async () => (await capacity().catch(() => null)) ?? DEFAULT_CAPACITY

  const admitWaiting = async (): Promise<void> => {
    somethingChanged = true
    if (isAdmitting) return
    isAdmitting = true
    while (somethingChanged && queue.waiting() > 0) {
      const now = await readCapacity()
      somethingChanged = false
      places = now.places
      for (const pass of queue.admit(now)) pass.turn.resolve()
      const isLacking = queue.waiting() > 0 && queue.weight() > now.weight
      lackingSinceMs = isLacking ? Math.min(lackingSinceMs, clock.monotonicMs()) : Infinity
      if (!isLacking) continue
      // Capacity can become free outside of this queue, without an event.
      await clock.sleep(ASK_AGAIN_MS)
      somethingChanged = true
    }
    isAdmitting = false
  }

  const begin = (pass: Waiter): (() => void) => {
    const startedMs = clock.monotonicMs()
    const done = new AbortController()
    const giveUpPlace = () => {
      queue.releasePlace(pass)
      void admitWaiting()
    }
    clock.sleep(slowMs, done.signal).then(giveUpPlace, () => {})
    return () => {
      done.abort()
      const tookMs = Math.min(slowMs, clock.monotonicMs() - startedMs)
      usualMs += NEWEST * (tookMs - usualMs)
      giveUpPlace()
    }
  }

  const leave = (pass: Waiter): void => {
    queue.leave(pass)
    void admitWaiting()
  }

  /** Estimated from the recent durations. */
  const throughMs = () => (usualMs * (queue.waiting() + 1)) / places

  return {
    async run(entry, work) {
      const pass = { ...entry, turn: Promise.withResolvers<void>() }
      if (!queue.join(pass)) throw new AdmissionRejected('full', throughMs())
      void admitWaiting()
      await completesWithin(clock, maxWaitMs, pass.turn.promise)
      if (!queue.isInside(pass)) {
        queue.leave(pass)
        throw new AdmissionRejected('late', throughMs())
      }
      const end = begin(pass)
      try {
        const result = await work()
        void clock.sleep(releaseDelayMs).then(() => leave(pass))
        return result
      } catch (error) {
        leave(pass)
        throw error
      } finally {
        end()
      }
    },
    fullForMs: (owner) => (queue.isFull(owner) ? throughMs() : null),
    waiting: () => queue.waiting(),
    hasCapacity: async () => queue.weight() <= (await readCapacity()).weight,
    isOverloaded: async () =>
      (await readCapacity()).weight < 0 || clock.monotonicMs() - lackingSinceMs > A_WHILE_MS,
  }
}
