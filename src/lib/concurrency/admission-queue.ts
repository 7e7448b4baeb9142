// Admission control: a fair, bounded queue that starts work while a slot and capacity are available. Capacity can only
// be polled, so it is polled while anyone waits; if it is unknown, two at a time are admitted.

import { type Clock, SECOND } from '../clock.ts'
import { completesWithin } from './completes-within.ts'
import { createFairQueue, type Entry, type QueueBounds, type Capacity } from './fair-queue.ts'

export type AdmissionQueueOptions = {
  clock: Clock
  /** Null: nobody knows. Answers soon, whatever happens (lib/concurrency/ttl-cache.ts). */
  capacity: () => Promise<Capacity | null>
  bounds: QueueBounds
  maxWaitMs: number
  /** Work that takes longer lets another have its place and goes on: what hangs holds nobody up. */
  slowMs: number
  /** How long work weighs after it is done: until the next look at the room shows what it has taken. */
  releaseDelayMs: number
}

export type AdmissionQueue = {
  /** Does the work when it is its turn. Throws AdmissionRejected when that does not come. */
  run<T>(entry: Entry, work: () => Promise<T>): Promise<T>
  /** How long until one more of the owner's may wait; null: it may now. */
  fullForMs(owner: string): number | null
  /** Whether one could go in as far as the room goes. True where nobody knows. */
  hasCapacity(): Promise<boolean>
  /** There is none, or those that wait have lacked it for a while. False where nobody knows. */
  isOverloaded(): Promise<boolean>
}

export class AdmissionRejected extends Error {
  /** `full`: it did not even wait. `late`: it has waited as long as anybody may. */
  readonly reason: 'full' | 'late'
  /** When those before it may be through, by how long the last ones took. */
  readonly retryAfterMs: number

  constructor(reason: AdmissionRejected['reason'], retryAfterMs: number) {
    super(reason === 'full' ? 'too many wait already' : 'there was no room in time')
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

type Waiter = Entry & { turn: PromiseWithResolvers<void> }

const ASK_AGAIN_MS = SECOND / 4
/** What is under way may be through sooner. */
const A_WHILE_MS = SECOND
/** Where nobody knows how much room there is. */
const DEFAULT_CAPACITY: Capacity = { places: 2, weight: Infinity }
/** How much the newest duration counts in the average. */
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
      // What it lacks can come from elsewhere than from those inside, and nobody would tell.
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

  /** By how long the last ones took. */
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
    hasCapacity: async () => queue.weight() <= (await readCapacity()).weight,
    isOverloaded: async () =>
      (await readCapacity()).weight < 0 || clock.monotonicMs() - lackingSinceMs > A_WHILE_MS,
  }
}
