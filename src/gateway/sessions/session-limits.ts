// The limits of a visitor, of a unit and of the whole gateway, and all timeouts.

import { HOUR, MINUTE, SECOND } from '../../lib/clock.ts'

/** The phase of a visit, by what it waits for; each has its own timeout. */
export type Phase = keyof SessionLimits['patienceMs']

type Refusing = { running: number; woken: number }

export type SessionLimits = {
  connections: number
  /** A peer is an IPv4 address, or the /64 of an IPv6 address. */
  connectionsPerPeer: number
  visits: number
  visitsPerPeer: number
  visitsPerUnit: number
  /** Visits that wait for one unit to wake. */
  waitingPerUnit: number
  headerBytes: number
  headersMs: number
  /** The idle timeout of a kept connection. */
  keepAliveMs: number
  /** How long a running unit may refuse connections before the visitor gets an error; longer if it just woke. */
  refusingMs: Refusing
  /** The same for a database connection, whose client cannot be told to try again. */
  refusingSessionMs: Refusing
  patienceMs: {
    /** Until the endpoint is known. */
    finding: number
    /** The waker has a shorter timeout of its own. */
    waking: number
    connecting: number
    /** In each such interval, `uploadBytes` of an incomplete body must arrive. */
    uploading: number
    /** Until a unit begins to answer. */
    awaiting: number
    /** Between two bytes of a response. */
    answering: number
    /** The visitor reads nothing of a response: as long as a waiting visitor may use its unit. */
    stalled: number
    /**
     * An event stream, a WebSocket or a database connection may be silent, and its visitor may read slowly, as long
     * as its unit has this address. It uses no more than the buffers of both ends.
     */
    open: number
    /** The rest of a body that is read only to be dropped. */
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
  // A unit that was just made runs before its server listens.
  refusingMs: { running: 5 * SECOND, woken: 10 * SECOND },
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

/**
 * The part of one of several gateways: together they have these limits, and up to one more for each. The kernel spreads
 * connections by chance, so a gateway may reach its part while another one has room.
 */
export function dividedLimits(limits: SessionLimits, workers: number): SessionLimits {
  const part = (limit: number) => Math.ceil(limit / workers)
  return {
    ...limits,
    connections: part(limits.connections),
    connectionsPerPeer: part(limits.connectionsPerPeer),
    visits: part(limits.visits),
    visitsPerPeer: part(limits.visitsPerPeer),
    visitsPerUnit: part(limits.visitsPerUnit),
    waitingPerUnit: part(limits.waitingPerUnit),
  }
}
