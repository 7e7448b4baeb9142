// Every visit in progress. Twice a second each is checked: whether its route is still the same, and whether a side
// has stalled for too long. So no visit needs a timer of its own, a rotated secret or an ended run takes effect
// within a second however the news arrives, and use is reported in one place.

import type { Clock } from '../../lib/clock.ts'
import { logLimitReached } from '../../lib/limit-reached.ts'
import type { Log } from '../../lib/log.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import type { Activity, Route, Routes } from '../route.ts'
import type { BytesClass } from './bytes-class.ts'
import type { Phase, SessionLimits } from './session-limits.ts'

/** How often visits are checked. */
export const CHECK_EVERY_MS = 500

/** Why a visit is ended early. */
export type Cut = { kind: 'gone' } | { kind: 'moved' } | { kind: 'late'; phase: Phase }

export class Session {
  /** The address of the visitor. */
  readonly peer: string
  /** The name of its endpoint, to look the route up again. */
  name = ''
  /** The run it was passed on to; null until then. */
  route: Route | null = null
  phase: Phase = 'finding'
  sinceMs: number
  /** Bytes of the request's body. */
  uploadedBytes = 0
  /**
   * For a connection that stays open: how many bytes count as use (design 4), without pings; null: the whole visit
   * counts.
   */
  bytes: (() => number) | null = null
  seenBytes = 0
  /** True while its unit works for it without sending bytes, which also counts as use. */
  isWaiting: () => boolean = () => false
  /** Its unit was seen asleep: only bytes after that are meant to wake it. */
  isAsleep = false
  /** The visitor has disconnected. */
  isGone = false
  endUse: () => void = () => {}
  /** Called when the visitor sends bytes on a connection that stays open. */
  onClientBytes: (chunk: Buffer, said: BytesClass) => void = () => {}
  /** Called at each check while its unit is frozen. */
  whileAsleep: () => void = () => {}
  readonly #nowMs: () => number
  #onCut: (why: Cut) => void = () => {}
  #mark = 0

  constructor(peer: string, nowMs: () => number) {
    this.peer = peer
    this.#nowMs = nowMs
    this.sinceMs = nowMs()
  }

  /** Also called to show progress: the phase's timeout starts again. */
  enter(phase: Phase): void {
    this.phase = phase
    this.sinceMs = this.#nowMs()
    this.#mark = this.uploadedBytes
  }

  /**
   * Sets what to do at once when the visit is cut. A visit that was cut between two of these calls is cut at the next
   * one.
   */
  onCut(act: (why: Cut) => void): void {
    this.#onCut = act
    if (this.isGone) act({ kind: 'gone' })
  }

  cut(why: Cut): void {
    if (this.isGone) return
    this.isGone = why.kind === 'gone'
    this.#onCut(why)
  }

  /** From here on only these bytes count as use. */
  staysOpen(bytes: () => number): void {
    this.bytes = bytes
    this.endUse()
    this.enter('open')
  }

  isLate(nowMs: number, { patienceMs, uploadBytes }: SessionLimits): boolean {
    if (nowMs - this.sinceMs < patienceMs[this.phase]) return false
    if (this.phase !== 'uploading' || this.uploadedBytes - this.#mark < uploadBytes) return true
    this.enter('uploading')
    return false
  }
}

export type OpenSessions = {
  /** Returns null if the peer, or all peers together, have too many. */
  begin(peer: string): Session | null
  /** Counts it for the unit; returns false if the unit has too many. */
  enterUnit(session: Session, route: Route): boolean
  end(session: Session): void
  count(): number
  check(): Promise<void>
  cutAll(): void
}

export type OpenSessionsOptions = {
  routes: Routes
  activity: Activity
  limits: SessionLimits
  clock: Clock
  log: Log
  /** Called when a unit fell asleep during a visit that now needs it. */
  wake: (route: Route) => void
  /** Called when a run of a unit has ended. */
  forgetUnit: (unitId: string) => void
}

export function createOpenSessions(options: OpenSessionsOptions): OpenSessions {
  const { routes, activity, limits, clock, log, wake, forgetUnit } = options
  const open = new Set<Session>()
  const units = new Map<Session, string>()
  const peers = createConcurrencyLimit(limits.visits, limits.visitsPerPeer)
  const shares = createConcurrencyLimit(limits.visits, limits.visitsPerUnit)
  /** The time of the last check: exact enough for timeouts, and cheap to read. */
  let nowMs = clock.monotonicMs()
  const now = () => nowMs

  /** Rejects if the route is unknown; open visits then stay open. */
  async function follow(name: string, visits: Session[]): Promise<void> {
    const route = await routes.find(name)
    for (const session of visits) {
      const was = session.route
      if (was === null || session.isGone) continue
      if (route === null || !isSame(route, was)) {
        forgetUnit(was.unitId)
        session.cut({ kind: 'moved' })
        continue
      }
      const isNeeded = session.bytes ? moved(session) : session.phase === 'awaiting'
      const wasAsleep = session.isAsleep
      session.isAsleep = route.state === 'sleeping'
      if (session.isAsleep) session.whileAsleep()
      // Bytes before it fell asleep were handled then, unless their answer is still missing.
      if (session.isAsleep && isNeeded && (wasAsleep || session.bytes === null || session.isWaiting()))
        wake(route)
    }
  }

  /** Reports use if bytes have passed since the last check. */
  function moved(session: Session): boolean {
    const bytes = session.bytes?.() ?? 0
    const hasMoved = bytes !== session.seenBytes
    session.seenBytes = bytes
    if ((hasMoved || session.isWaiting()) && session.route) activity.touch(session.route.unitId)
    return hasMoved
  }

  return {
    begin(peer) {
      if (!peers.tryAcquire(peer)) {
        const by = peers.count(peer) >= limits.visitsPerPeer ? peer : null
        logLimitReached({ log, clock }, { bound: 'visits at once', by })
        return null
      }
      const session = new Session(peer, now)
      open.add(session)
      return session
    },
    enterUnit(session, route) {
      const isIn = units.has(session) || shares.tryAcquire(route.unitId)
      if (isIn) units.set(session, route.unitId)
      else logLimitReached({ log, clock }, { bound: 'visits to one unit', by: route.unitId })
      return isIn
    },
    end(session) {
      if (!open.delete(session)) return
      peers.release(session.peer)
      const unitId = units.get(session)
      if (unitId !== undefined) shares.release(unitId)
      units.delete(session)
      session.endUse()
    },
    count: () => open.size,
    async check() {
      nowMs = clock.monotonicMs()
      const byName = new Map<string, Session[]>()
      for (const session of open) {
        if (session.isLate(nowMs, limits)) session.cut({ kind: 'late', phase: session.phase })
        else if (session.route) {
          const visits = byName.get(session.name)
          if (visits) visits.push(session)
          else byName.set(session.name, [session])
        }
      }
      await Promise.allSettled([...byName].map(([name, visits]) => follow(name, visits)))
    },
    cutAll() {
      for (const session of open) session.cut({ kind: 'moved' })
    },
  }
}

/** Whether a visit begun on one route may continue on the other. */
function isSame(route: Route, was: Route): boolean {
  const { secretHash } = route
  const opensAlike = secretHash === null ? was.secretHash === null : was.secretHash?.equals(secretHash)
  if (!opensAlike || route.unitId !== was.unitId || route.port !== was.port) return false
  // The waker may know of the unit's new run before the row shows it.
  if (route.generation < was.generation) return true
  return route.generation === was.generation && route.address === was.address && isThere(route)
}

/** Whether the run exists, or is about to be frozen: a frozen run continues later. */
function isThere({ state, stoppedReason, frozen }: Route): boolean {
  switch (state) {
    case 'running':
      return true
    case 'stopping':
      return stoppedReason === 'idle'
    case 'sleeping':
    case 'starting':
      return frozen
    default:
      return false
  }
}
