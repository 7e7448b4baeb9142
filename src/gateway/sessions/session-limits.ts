// How much a visitor, a unit and the whole gateway may take, and how long anything may last.

import { HOUR, MINUTE, SECOND } from '../../lib/clock.ts'

/** What a visit is doing, by whom it waits for; each has its own patience. */
export type Phase = keyof SessionLimits['patienceMs']

type Refusing = { running: number; woken: number }

export type SessionLimits = {
  connections: number
  /** A peer is an address, or the /64 of an IPv6 address. */
  connectionsPerPeer: number
  visits: number
  visitsPerPeer: number
  visitsPerUnit: number
  /** Visits that wait for one unit to wake. */
  waitingPerUnit: number
  headerBytes: number
  headersMs: number
  /** A kept connection between two requests. */
  keepAliveMs: number
  /** How long a unit that runs may refuse connections before it is said to; just woken it may longer. */
  refusingMs: Refusing
  /** The same for a connection to a database, which nobody can tell to come again. */
  refusingSessionMs: Refusing
  patienceMs: {
    /** Until it is known which unit is meant. */
    finding: number
    /** The waker has a bound of its own, below this. */
    waking: number
    connecting: number
    /** In each such time, `uploadBytes` of a body that is not whole yet have to arrive. */
    uploading: number
    /** Until a unit begins to answer. */
    awaiting: number
    /** Between two bytes of an answer. */
    answering: number
    /** A visitor reads nothing of an answer to a request: as long as one that waits may use its unit. */
    stalled: number
    /**
     * An event stream, a WebSocket or a connection to a database may be silent, and its visitor may read as slowly as
     * he likes, for as long as its unit has this address. Neither holds more than the buffers of both ends.
     */
    open: number
    /** What is left of a body that nobody reads any more. */
    leftover: number
  }
  uploadBytes: number
}

export const sessionLimits: SessionLimits = {
  connections: 10_000,
  connectionsPerPeer: 4096,
  visits: 16_384,
  visitsPerPeer: 4096,
  visitsPerUnit: 4096,
  waitingPerUnit: 1024,
  headerBytes: 32 * 1024,
  headersMs: 10 * SECOND,
  keepAliveMs: 75 * SECOND,
  refusingMs: { running: SECOND, woken: 10 * SECOND },
  // RabbitMQ takes half a minute to start.
  refusingSessionMs: { running: 10 * SECOND, woken: MINUTE },
  patienceMs: {
    finding: 10 * SECOND,
    waking: 75 * SECOND,
    connecting: 5 * SECOND,
    uploading: 30 * SECOND,
    awaiting: 300 * SECOND,
    answering: 300 * SECOND,
    stalled: HOUR,
    open: Infinity,
    leftover: 10 * SECOND,
  },
  uploadBytes: 4096,
}
