// Wake leases. Before a visit is proxied, the server has recorded a use of its unit, which keeps it awake for at
// least a minute. The lease covers all visits of the next seconds and is renewed in the background, so visits to a
// busy unit ask no one.
//
// A lease is only valid for the run it was granted for. The server notifies us when a run ends. While that stream is
// down we hold no leases and use the database state instead: without a server no unit is put to sleep either.

import { VISIT_WAIT_MS, type Visited } from '../../contract/visit.ts'
import { type Clock, SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import { createSingleFlight } from '../../lib/concurrency/single-flight.ts'
import { createLongSessions } from './long-sessions.ts'
import type { Activity, Route, WakeOutcome, Waker } from '../route.ts'
import type { ServerClient } from './client.ts'
import { MAX_IDS } from './protocol.ts'

/** How long a recorded use is valid: well below the shortest idle window, which is a minute. */
const GOOD_FOR_MS = 20 * SECOND
/** For a unit with visits; also the longest delay until the end of a visit is reported. */
const RENEW_EVERY_MS = 5 * SECOND
/** A server that does not answer for a unit that seems to run is stuck, and puts no unit to sleep. */
const PATIENCE_MS = SECOND
const AGAIN_MS = 250
const away: WakeOutcome = { kind: 'waiting', retryAfterS: 5 }

type Run = { generation: number; address: string }

type Lease = {
  /** The run known to be awake, or null. */
  run: Run | null
  /** When its use was last recorded, as far as the gateway knows. */
  recordedMs: number
  runEndedMs: number
  /** Whether the server is being asked about it. */
  isAsked: boolean
  /** Requests in progress. */
  open: number
  /** When a visit last used it. */
  usedMs: number
}

export type WakeLeases = { waker: Waker; activity: Activity; stop(): Promise<void> }

export function createWakeLeases({
  server,
  worker,
  clock,
  log,
}: {
  server: ServerClient
  /** The number of this gateway among several on one host. */
  worker?: number
  clock: Clock
  log: Log
}): WakeLeases {
  const leases = new Map<string, Lease>()
  const longSessions = createLongSessions({ server, ...(worker !== undefined && { worker }), clock, log })
  const asks = createSingleFlight<Visited | null>(clock)
  let isConnected = false

  const leaseOf = (unitId: string): Lease => {
    const known = leases.get(unitId)
    if (known) return known
    const never = { recordedMs: -Infinity, runEndedMs: -Infinity, usedMs: -Infinity }
    const fresh: Lease = { run: null, ...never, isAsked: false, open: 0 }
    leases.set(unitId, fresh)
    return fresh
  }
  const forgetRuns = () => {
    for (const lease of leases.values()) lease.run = null
  }

  // Waking

  function findLease(route: Route): Route | null {
    if (!isConnected) return route.state === 'running' ? route : null
    const lease = leases.get(route.unitId)
    // The route can be older than the run, but not newer.
    if (!lease?.run || lease.run.generation < route.generation) return null
    return clock.monotonicMs() - lease.recordedMs < GOOD_FOR_MS ? withRun(route, lease.run) : null
  }

  async function wake(route: Route): Promise<WakeOutcome> {
    const seemsToRun = route.state === 'running'
    // If it does not seem to run, only the answer counts.
    const asked = asks.run(`${route.unitId} ${seemsToRun}`, VISIT_WAIT_MS, () =>
      askUntil(clock.monotonicMs() + (seemsToRun ? 0 : VISIT_WAIT_MS), route.unitId),
    )
    if (seemsToRun && !(await completesWithin(clock, PATIENCE_MS, asked))) return { kind: 'running', route }
    const answer = await asked
    if (answer?.kind === 'running') return { kind: 'running', route: withRun(route, answer) }
    return answer ?? (seemsToRun ? { kind: 'running', route } : away)
  }

  /** Returns null if the server could not be asked. */
  async function askUntil(deadlineMs: number, unitId: string): Promise<Visited | null> {
    for (;;) {
      try {
        return await ask(unitId)
      } catch {
        if (clock.monotonicMs() >= deadlineMs) return null
      }
      await clock.sleep(AGAIN_MS)
    }
  }

  async function ask(unitId: string): Promise<Visited> {
    const askedMs = clock.monotonicMs()
    const lease = leaseOf(unitId)
    lease.isAsked = true
    try {
      const answer = await server.ask('use', { unitId })
      // A run whose end was reported since then may have ended after the answer.
      if (answer.kind === 'running' && isConnected && lease.runEndedMs < askedMs) {
        const { generation, address } = answer
        Object.assign(lease, { run: { generation, address }, recordedMs: askedMs })
      }
      return answer
    } finally {
      lease.isAsked = false
    }
  }

  function invalidateLease(unitId: string): void {
    const lease = leases.get(unitId)
    // A second answer this soon would be the same.
    if (lease && clock.monotonicMs() - lease.recordedMs >= SECOND) lease.run = null
  }

  // Reporting use

  async function tell(): Promise<void> {
    const nowMs = clock.monotonicMs()
    for (const [unitId, lease] of leases) {
      if (lease.open > 0) lease.usedMs = nowMs
      else if (isOver(lease, nowMs)) leases.delete(unitId)
    }
    const due = [...leases].filter(([, lease]) => isDue(lease, nowMs)).slice(0, MAX_IDS)
    if (!isConnected || due.length === 0) return
    const { awake } = await server.ask('used', { unitIds: due.map(([unitId]) => unitId) })
    const running = new Set(awake)
    for (const [unitId, lease] of due) {
      lease.recordedMs = nowMs
      if (!running.has(unitId)) lease.run = null
    }
  }

  const stopping = new AbortController()
  const loops = [
    server.follow(
      {
        onConnected: () => {
          isConnected = true
          longSessions.resend()
          forgetRuns()
        },
        onRunEnded: (unitId) => {
          const lease = leases.get(unitId)
          if (lease) Object.assign(lease, { run: null, runEndedMs: clock.monotonicMs() })
        },
        onDisconnected: () => {
          isConnected = false
        },
      },
      stopping.signal,
    ),
    runLoop(
      { name: 'use of units', everyMs: SECOND, timeoutMs: 15 * SECOND, run: tell },
      { clock, log, signal: stopping.signal },
    ),
    longSessions.run(stopping.signal),
  ]

  return {
    waker: {
      findLease,
      wake,
      invalidateLease,
    },
    activity: {
      begin(unitId, endpointId) {
        const lease = leaseOf(unitId)
        const end = longSessions.begin(unitId, endpointId)
        lease.open += 1
        return () => {
          lease.open -= 1
          lease.usedMs = clock.monotonicMs()
          end()
        }
      },
      touch: (unitId) => {
        leaseOf(unitId).usedMs = clock.monotonicMs()
      },
    },
    stop: async () => {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

function withRun(route: Route, { generation, address }: Run): Route {
  const isIt = route.state === 'running' && route.generation === generation && route.address === address
  return isIt ? route : { ...route, state: 'running', stoppedReason: null, generation, address }
}

function isDue({ usedMs, recordedMs }: Lease, nowMs: number): boolean {
  return usedMs > recordedMs && nowMs - recordedMs >= RENEW_EVERY_MS
}

function isOver({ usedMs, recordedMs, isAsked }: Lease, nowMs: number): boolean {
  return !isAsked && usedMs <= recordedMs && nowMs - recordedMs >= GOOD_FOR_MS
}
