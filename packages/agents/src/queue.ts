// What the controller needs of a vendor whose work comes as a leased queue: one file a vendor implements it (vendors.ts).

import type { Tool } from './tools.ts'
import type { Claim } from './claim.ts'

export type WorkItem = {
  id: string
  /** Null: of a kind that this driver does not know. */
  sessionId: string | null
  /** As the vendor calls it. */
  kind: string
  /** A credential for this item alone, where the vendor gives one. Never logged. */
  secret: string | null
}

export type Session = {
  hasEnded: boolean
  metadata: Record<string, string>
  /** What the session asks for and this controller does not do, as sentences. */
  lacks: string[]
  /** The vendor's own worker in the unit, for what only that does; null: calls are answered by the tools from outside. */
  worker: Claim | null
}

/** What every driver is opened with; it takes of it what its vendor has. */
export type QueueOptions = {
  environmentId: string
  environmentKey: string
  /** Default: the vendor's. */
  url?: string | undefined
  /** Of this controller, unique. */
  workerId: string
  /** How long a session may be idle after a turn until its item is ended, in ms. */
  idleMs?: number | undefined
  /** An item that was leased and not accepted for so long is given again, in ms. */
  reclaimMs?: number | undefined
  /** One that was accepted and not begun for so long is begun again, in ms. */
  strandedMs?: number | undefined
  /** Where a library of the vendor may write. Default: the system's directory for temporary files. */
  workDir?: string | undefined
  /** In place of the runtime's own. */
  fetch?: typeof fetch | undefined
}

export type OpenQueue = (options: QueueOptions) => Promise<LeasedQueue>

export type LeasedQueue = {
  /** A word of lower-case letters, for names, labels and log lines. */
  vendor: string
  /** The next item, leased and not yet accepted; null if there is none. Throws `QueueRefused` if it will never work. */
  poll: (signal: AbortSignal) => Promise<WorkItem | null>
  /** Items that were accepted by a controller which then did not begin. */
  stranded: (signal: AbortSignal) => Promise<WorkItem[]>
  /** By the id of a session, with the credential of its item if there is one. */
  session: (id: string, item: WorkItem | null, signal: AbortSignal) => Promise<Session>
  /** The point of no return: the vendor gives the item to nobody else as long as it is heard of. */
  accept: (item: WorkItem, signal: AbortSignal) => Promise<void>
  /** Answers the calls of the session with the tools until its turn is over. Renews the lease, and ends the item. */
  run: (item: WorkItem & { sessionId: string }, tools: Tool[], signal: AbortSignal) => Promise<void>
  /** Ends an item that is not run. */
  end: (item: WorkItem, signal: AbortSignal) => Promise<void>
}

/** The vendor refuses what no repetition changes, such as a wrong credential. The message is for a person. */
export class QueueRefused extends Error {
  override readonly name = 'QueueRefused'
}

/** What a controller tells: a line for a log, and what it means. */
export type News = {
  /** Null: about the queue. */
  session: string | null
  sentence: string
  /**
   * `asked`: the queue answers; `failing`: it does not; `full`: there is no room for another unit. Of a session: `begun` and
   * `over` are its work, `refused` is work that cannot begin, `ended` is the session itself. `left`: work that is for others.
   */
  kind: 'said' | 'asked' | 'left' | 'failing' | 'full' | 'begun' | 'over' | 'refused' | 'ended'
  /** With `begun`. */
  unitId?: string
  /** With `full` and `refused`: the reason alone, for people. With `begun`: what it does without. */
  why?: string
}
export type Tell = (news: News) => void
