// Visits keep their units awake, and wake them. Before a visit is passed on the server has recorded a use of its
// unit, which keeps it awake for a minute at least; that is good for all visits of the next seconds, and renewed
// beside them as long as there are any. So a visit of a busy unit asks nobody.
//
// It is good no longer than the run it was said of. The server tells of every unit that stops running; while
// nobody tells, nothing is taken as known, and what the database says of a unit is gone by: without a server
// nobody puts it to sleep either.

import { VISIT_WAIT_MS, type Visited } from '../../contract/visit.ts'
import { type Clock, SECOND } from '../../lib/clock.ts'
import { doneWithin } from '../../lib/concurrency/completes-within.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import { createSingleFlight } from '../../lib/concurrency/single-flight.ts'
import { createLastingVisits } from '../sessions/long-sessions.ts'
import type { Activity, Route, WakeOutcome, Waker } from '../routing/route.ts'
import type { WakeServer } from './client.ts'
import { MOST_IDS } from './protocol.ts'

/** How long a recorded use is good for: well below the shortest window, which is a minute. */
const GOOD_FOR_MS = 20 * SECOND
/** Of a unit with visits; also how late the end of one may be told. */
const RENEW_EVERY_MS = 5 * SECOND
/** A server that has nothing to say of a unit that seems to run is stuck, and puts nobody to sleep. */
const PATIENCE_MS = SECOND
const AGAIN_MS = 250
const away: WakeOutcome = { kind: 'waiting', retryAfterS: 5 }

type Run = { generation: number; address: string }

type Use = {
  /** The one that is awake, where that is known. */
  run: Run | null
  /** When its use was last recorded; the server may have done so later. */
  recordedMs: number
  departedMs: number
  /** The server is asked for it just now. */
  isAsked: boolean
  /** Requests under way. */
  open: number
  /** When a visit was last seen to use it. */
  usedMs: number
}

export type UnitUse = { waker: Waker; activity: Activity; stop(): Promise<void> }

export function createUnitUse({
  server,
  clock,
  log,
}: {
  server: WakeServer
  clock: Clock
  log: Log
}): UnitUse {
  const uses = new Map<string, Use>()
  const lasting = createLastingVisits({ server, clock, log })
  const asks = createSingleFlight<Visited | null>(clock)
  let isThere = false

  const useOf = (unitId: string): Use => {
    const known = uses.get(unitId)
    if (known) return known
    const never = { recordedMs: -Infinity, departedMs: -Infinity, usedMs: -Infinity }
    const fresh: Use = { run: null, ...never, isAsked: false, open: 0 }
    uses.set(unitId, fresh)
    return fresh
  }
  const forgetRuns = () => {
    for (const use of uses.values()) use.run = null
  }

  // Waking

  function awake(route: Route): Route | null {
    if (!isThere) return route.state === 'running' ? route : null
    const use = uses.get(route.unitId)
    // The route may be older than the run, but not newer.
    if (!use?.run || use.run.generation < route.generation) return null
    return clock.monotonicMs() - use.recordedMs < GOOD_FOR_MS ? withRun(route, use.run) : null
  }

  async function wake(route: Route): Promise<WakeOutcome> {
    const seemsToRun = route.state === 'running'
    // Where it does not, there is nothing to go by but the answer.
    const asked = asks.run(`${route.unitId} ${seemsToRun}`, VISIT_WAIT_MS, () =>
      askUntil(clock.monotonicMs() + (seemsToRun ? 0 : VISIT_WAIT_MS), route.unitId),
    )
    if (seemsToRun && !(await doneWithin(clock, PATIENCE_MS, asked))) return { kind: 'running', route }
    const answer = await asked
    if (answer?.kind === 'running') return { kind: 'running', route: withRun(route, answer) }
    return answer ?? (seemsToRun ? { kind: 'running', route } : away)
  }

  /** Null: nobody could be asked. */
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
    const use = useOf(unitId)
    use.isAsked = true
    try {
      const answer = await server.ask('use', { unitId })
      // One that has stopped running since may have done so after the answer.
      if (answer.kind === 'running' && isThere && use.departedMs < askedMs) {
        const { generation, address } = answer
        Object.assign(use, { run: { generation, address }, recordedMs: askedMs })
      }
      return answer
    } finally {
      use.isAsked = false
    }
  }

  function doubt(unitId: string): void {
    const use = uses.get(unitId)
    // What was said just now would be said again.
    if (use && clock.monotonicMs() - use.recordedMs >= SECOND) use.run = null
  }

  // Telling of use

  async function tell(): Promise<void> {
    const nowMs = clock.monotonicMs()
    for (const [unitId, use] of uses) {
      if (use.open > 0) use.usedMs = nowMs
      else if (isOver(use, nowMs)) uses.delete(unitId)
    }
    const due = [...uses].filter(([, use]) => isDue(use, nowMs)).slice(0, MOST_IDS)
    if (!isThere || due.length === 0) return
    const { awake } = await server.ask('used', { unitIds: due.map(([unitId]) => unitId) })
    const running = new Set(awake)
    for (const [unitId, use] of due) {
      use.recordedMs = nowMs
      if (!running.has(unitId)) use.run = null
    }
  }

  const stopping = new AbortController()
  const loops = [
    server.follow(
      {
        onThere: () => {
          isThere = true
          lasting.tellAnew()
          forgetRuns()
        },
        onDeparture: (unitId) => {
          const use = uses.get(unitId)
          if (use) Object.assign(use, { run: null, departedMs: clock.monotonicMs() })
        },
        onAway: () => {
          isThere = false
        },
      },
      stopping.signal,
    ),
    runLoop(
      { name: 'use of units', everyMs: SECOND, timeoutMs: 15 * SECOND, run: tell },
      { clock, log, signal: stopping.signal },
    ),
    lasting.run(stopping.signal),
  ]

  return {
    waker: {
      awake,
      wake,
      doubt,
    },
    activity: {
      begin(unitId, endpointId) {
        const use = useOf(unitId)
        const end = lasting.begin(unitId, endpointId)
        use.open += 1
        return () => {
          use.open -= 1
          use.usedMs = clock.monotonicMs()
          end()
        }
      },
      touch: (unitId) => {
        useOf(unitId).usedMs = clock.monotonicMs()
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

function isDue({ usedMs, recordedMs }: Use, nowMs: number): boolean {
  return usedMs > recordedMs && nowMs - recordedMs >= RENEW_EVERY_MS
}

function isOver({ usedMs, recordedMs, isAsked }: Use, nowMs: number): boolean {
  return !isAsked && usedMs <= recordedMs && nowMs - recordedMs >= GOOD_FOR_MS
}
