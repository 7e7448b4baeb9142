// Work that may begin only a little at a time: it waits its turn in a fair queue, bounded in number and in
// time, until there is a place and room for it. How much room there is can only be asked, so it is asked
// again while anybody waits for it; where nobody knows, a little is let in all the same.

import { type Clock, SECOND } from '../clock.ts'
import { doneWithin } from './completes-within.ts'
import { createFairQueue, type Entry, type QueueBounds, type Room } from './fair-queue.ts'

export type TurnstileOptions = {
  clock: Clock
  /** Null: nobody knows. Answers soon, whatever happens (lib/concurrency/ttl-cache.ts). */
  room: () => Promise<Room | null>
  bounds: QueueBounds
  maxWaitMs: number
  /** Work that takes longer lets another have its place and goes on: what hangs holds nobody up. */
  slowMs: number
  /** How long work weighs after it is done: until the next look at the room shows what it has taken. */
  weighsOnMs: number
}

export type Turnstile = {
  /** Does the work when it is its turn. Throws NoTurn when that does not come. */
  pass<T>(entry: Entry, work: () => Promise<T>): Promise<T>
  /** How long until one more of the owner's may wait; null: it may now. */
  fullForMs(owner: string): number | null
  /** Whether one could go in as far as the room goes. True where nobody knows. */
  hasRoom(): Promise<boolean>
  /** There is none, or those that wait have lacked it for a while. False where nobody knows. */
  lacksRoom(): Promise<boolean>
}

export class NoTurn extends Error {
  /** `full`: it did not even wait. `late`: it has waited as long as anybody may. */
  readonly reason: 'full' | 'late'
  /** When those before it may be through, by how long the last ones took. */
  readonly retryAfterMs: number

  constructor(reason: NoTurn['reason'], retryAfterMs: number) {
    super(reason === 'full' ? 'too many wait already' : 'there was no room in time')
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}

type Pass = Entry & { turn: PromiseWithResolvers<void> }

const ASK_AGAIN_MS = SECOND / 4
/** What is under way may be through sooner. */
const A_WHILE_MS = SECOND
/** Where nobody knows how much room there is. */
const SOME_ROOM: Room = { places: 2, weight: Infinity }
/** How much the newest duration counts in the average. */
const NEWEST = 0.2

export function createTurnstile(options: TurnstileOptions): Turnstile {
  const { clock, room, bounds, maxWaitMs, slowMs, weighsOnMs } = options
  const queue = createFairQueue<Pass>(bounds)
  let isLettingIn = false
  let somethingChanged = false
  let places = SOME_ROOM.places
  let lackingSinceMs = Infinity
  let usualMs = SECOND / 4

  const readRoom = async () => (await room().catch(() => null)) ?? SOME_ROOM

  const letIn = async (): Promise<void> => {
    somethingChanged = true
    if (isLettingIn) return
    isLettingIn = true
    while (somethingChanged && queue.waiting() > 0) {
      const now = await readRoom()
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
    isLettingIn = false
  }

  const begin = (pass: Pass): (() => void) => {
    const startedMs = clock.monotonicMs()
    const done = new AbortController()
    const giveUpPlace = () => {
      queue.giveUpPlace(pass)
      void letIn()
    }
    clock.sleep(slowMs, done.signal).then(giveUpPlace, () => {})
    return () => {
      done.abort()
      const tookMs = Math.min(slowMs, clock.monotonicMs() - startedMs)
      usualMs += NEWEST * (tookMs - usualMs)
      giveUpPlace()
    }
  }

  const leave = (pass: Pass): void => {
    queue.leave(pass)
    void letIn()
  }

  /** By how long the last ones took. */
  const throughMs = () => (usualMs * (queue.waiting() + 1)) / places

  return {
    async pass(entry, work) {
      const pass = { ...entry, turn: Promise.withResolvers<void>() }
      if (!queue.join(pass)) throw new NoTurn('full', throughMs())
      void letIn()
      await doneWithin(clock, maxWaitMs, pass.turn.promise)
      if (!queue.isInside(pass)) {
        queue.leave(pass)
        throw new NoTurn('late', throughMs())
      }
      const end = begin(pass)
      try {
        const result = await work()
        void clock.sleep(weighsOnMs).then(() => leave(pass))
        return result
      } catch (error) {
        leave(pass)
        throw error
      } finally {
        end()
      }
    },
    fullForMs: (owner) => (queue.isFull(owner) ? throughMs() : null),
    hasRoom: async () => queue.weight() <= (await readRoom()).weight,
    lacksRoom: async () => (await readRoom()).weight < 0 || clock.monotonicMs() - lackingSinceMs > A_WHILE_MS,
  }
}
