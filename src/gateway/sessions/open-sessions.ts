// Every visit under way. Twice a second each is looked at: whether its route still is what it was when the visit
// began, and whether somebody has kept it waiting for too long. So no visit has a timer of its own, a rotated
// secret or an ended run is dead within a second however the news arrive, and use is told of in one place.

import type { Clock } from '../../lib/clock.ts'
import { tellBoundMet } from '../../lib/bound-met.ts'
import type { Log } from '../../lib/log.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import type { Activity, Route, Routes } from '../routing/route.ts'
import type { BytesClass } from '../tcp/classify-bytes.ts'
import type { Phase, SessionLimits } from './session-limits.ts'

/** How often visits are looked at. */
export const CHECK_EVERY_MS = 500

/** Why a visit ends before its time. */
export type Cut = { kind: 'gone' } | { kind: 'moved' } | { kind: 'late'; phase: Phase }

export class Session {
  /** Who asks. */
  readonly peer: string
  /** The name of its endpoint, by which its route is found again. */
  name = ''
  /** Where it was passed on to; null until then. */
  route: Route | null = null
  phase: Phase = 'finding'
  sinceMs: number
  /** Of the request's body. */
  uploadedBytes = 0
  /** Of a connection that stays open how many bytes count as use (design 4): not those of pings; null: the whole visit does. */
  bytes: (() => number) | null = null
  seenBytes = 0
  /** Its unit works for it, though no byte moves: use, too. */
  isWaiting: () => boolean = () => false
  /** Its unit has been seen asleep: only what has passed since then can be for one that is to wake. */
  isAsleep = false
  /** The visitor left: nobody waits for an answer. */
  isGone = false
  endUse: () => void = () => {}
  /** On a connection that stays open its visitor has said something. */
  onClientBytes: (chunk: Buffer, said: BytesClass) => void = () => {}
  /** At each look while its unit stands still. */
  whileAsleep: () => void = () => {}
  readonly #nowMs: () => number
  #onCut: (why: Cut) => void = () => {}
  #mark = 0

  constructor(peer: string, nowMs: () => number) {
    this.peer = peer
    this.#nowMs = nowMs
    this.sinceMs = nowMs()
  }

  /** Also to say that the phase goes on: something has moved. */
  enter(phase: Phase): void {
    this.phase = phase
    this.sinceMs = this.#nowMs()
    this.#mark = this.uploadedBytes
  }

  /**
   * What has to happen at once when the visit is cut, said by whoever works on it. One that was given up between two
   * of these is cut for the next: nothing else would ever end it.
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
  /** Null: the peer, or all together, have too many. */
  begin(peer: string): Session | null
  /** Into the unit's share; false: it has too many. */
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
  /** A unit fell asleep under a visit that now needs it. */
  wake: (route: Route) => void
  /** A run of a unit is over. */
  forgetUnit: (unitId: string) => void
}

export function createOpenSessions(options: OpenSessionsOptions): OpenSessions {
  const { routes, activity, limits, clock, log, wake, forgetUnit } = options
  const open = new Set<Session>()
  const units = new Map<Session, string>()
  const peers = createConcurrencyLimit(limits.visits, limits.visitsPerPeer)
  const shares = createConcurrencyLimit(limits.visits, limits.visitsPerUnit)
  /** As of the last look: exact enough for patience, and free to read. */
  let nowMs = clock.monotonicMs()
  const now = () => nowMs

  /** Rejects when nobody knows; then whatever is open stays open. */
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
      // What passed before it fell asleep was heard then, unless it has no answer yet.
      if (session.isAsleep && isNeeded && (wasAsleep || session.bytes === null || session.isWaiting()))
        wake(route)
    }
  }

  /** Tells of use, where bytes have passed since the last look. */
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
        tellBoundMet({ log, clock }, { bound: 'visits at once', by })
        return null
      }
      const session = new Session(peer, now)
      open.add(session)
      return session
    },
    enterUnit(session, route) {
      const isIn = units.has(session) || shares.tryAcquire(route.unitId)
      if (isIn) units.set(session, route.unitId)
      else tellBoundMet({ log, clock }, { bound: 'visits to one unit', by: route.unitId })
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

/** Whether a visit on its way by the one may go on by the other. */
function isSame(route: Route, was: Route): boolean {
  const { secretHash } = route
  const opensAlike = secretHash === null ? was.secretHash === null : was.secretHash?.equals(secretHash)
  if (!opensAlike || route.unitId !== was.unitId || route.port !== was.port) return false
  // Whoever woke the unit may know of its run before the row does.
  if (route.generation < was.generation) return true
  return route.generation === was.generation && route.address === was.address && isThere(route)
}

/** Whether the run is there, or about to stand still: one that was frozen goes on where it was. */
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
