// Rate limits of a credential (spec 8), exact over all server processes: each call is counted in the database before it
// does anything, in one statement with all that came meanwhile. Every process remembers what it wrote or was told last.
// Calls are only ever added, so what is used up by that is used up, and a flood costs no statement.

import type { App } from '../../app.ts'
import { rateLimited } from '../../contract/errors.ts'
import { batched } from '../../lib/concurrency/batch.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import {
  deleteRateWindows,
  findRateWindow,
  type RateWindowChange,
  type RateWindowRow,
  revisionAfter,
  saveRateWindows,
} from '../../store/rate-windows.ts'
import { type RateWindow, spentOf, waitMs, withCall } from './rate-window.ts'

const rateClasses = ['requests', 'creations', 'execs'] as const
/** What a call counts as. Every call also counts as a request. */
export type RateClass = (typeof rateClasses)[number]

export type RateLimits = {
  /** Counts a call, or throws `rateLimited`; a refused call counts for nothing. */
  spend(credentialId: string, rateClass: RateClass): Promise<void>
}

type Needs = Pick<App, 'db' | 'clock' | 'config'>
type Rates = Record<RateClass, number>
type Call = { credentialId: string; rateClass: RateClass }
type Refusal = { rateClass: RateClass; waitMs: number }
type Windows = Record<RateClass, RateWindow>
/** By the monotonic clock, as the database has them by this revision; null: it has none. */
type Known = { windows: Windows; revision: number | null }
/** One instant by both clocks. Rows go by the wall clock, and move along when that jumps. */
type Moment = { at: Date; ms: number }

const nothing: Known = { windows: { requests: [], creations: [], execs: [] }, revision: null }

/** Beyond this many credentials the one that was quiet longest is asked for anew. */
const MAX_KNOWN = 10_000
/** Longer than anything counts. */
const FORGET_AFTER_MS = 10 * MINUTE

export function createRateLimits(needs: Needs): RateLimits {
  const known = new Map<string, Known>()
  const count = batched((calls: Call[]) => countTogether(needs, known, calls))
  return {
    spend: async (credentialId, rateClass) => {
      const refusal = await count({ credentialId, rateClass })
      if (refusal) refuse(needs.config.rates, refusal)
    },
  }
}

/** What is left of each rate, and from when on it is whole again. */
export async function readRates(
  { db, clock, config }: Needs,
  credentialId: string,
): Promise<{ name: RateClass; limit: number; remaining: number; resetsAt: string }[]> {
  const row = await findRateWindow(db, credentialId)
  const now = momentOf(clock)
  const windows = row ? windowsOf(row, now) : nothing.windows
  return rateClasses.map((name) => {
    const { calls, untilMs } = spentOf(windows[name], now.ms)
    const limit = config.rates[name]
    const resetsAt = new Date(now.at.getTime() + untilMs - now.ms).toISOString()
    return { name, limit, remaining: Math.max(0, limit - calls), resetsAt }
  })
}

/** A loop's round. */
export async function forgetOldRates({ db, clock }: Pick<App, 'db' | 'clock'>): Promise<void> {
  const unusedSince = new Date(clock.now().getTime() - FORGET_AFTER_MS)
  await deleteRateWindows(db, { unusedSince, limit: 1000 })
}

const momentOf = (clock: Needs['clock']): Moment => ({ at: clock.now(), ms: clock.monotonicMs() })

function refuse(rates: Rates, { rateClass, waitMs: wait }: Refusal): never {
  const retryAfterS = Math.ceil(wait / SECOND)
  const limit = `${rates[rateClass]} ${rateClass} a minute`
  throw rateLimited(`The limit is ${limit}. Try again in ${retryAfterS} s.`, retryAfterS)
}

/**
 * What becomes of each call, in order: null when it is counted. A process does one of these at a time, so what it knows
 * changes under nobody.
 */
async function countTogether(
  { db, clock, config }: Needs,
  known: Map<string, Known>,
  calls: Call[],
): Promise<(Refusal | null)[]> {
  const outcomes = new Map<Call, Refusal | null>()
  let open = Map.groupBy(calls, ({ credentialId }) => credentialId)
  while (open.size > 0) {
    const now = momentOf(clock)
    const changes = [...open].flatMap(([credentialId, asked]) => {
      const before = known.get(credentialId) ?? nothing
      let { windows } = before
      for (const call of asked) {
        const refusal = refusalOf(windows, config.rates, call.rateClass, now.ms)
        outcomes.set(call, refusal)
        if (!refusal) windows = withCallOf(windows, call.rateClass, now.ms)
      }
      return windows === before.windows ? [] : [{ credentialId, windows, revision: before.revision }]
    })
    const lost = await save(db, known, changes, now)
    open = new Map([...open].filter(([credentialId]) => lost.has(credentialId)))
  }
  return calls.map((call) => outcomes.get(call) ?? null)
}

/** Answers the credentials that another process has counted for meanwhile: their calls are to be judged anew. */
async function save(
  db: Needs['db'],
  known: Map<string, Known>,
  changed: ({ credentialId: string } & Known)[],
  now: Moment,
): Promise<Set<string>> {
  if (changed.length === 0) return new Set()
  const changes = changed.map((change) => toChange(change, now))
  const lost = await saveRateWindows(db, changes)
  for (const [index, change] of changes.entries()) {
    const { credentialId } = change
    const windows = changed[index]?.windows ?? nothing.windows
    const current = lost.get(credentialId)
    // Taken out and put back, the map is in order of last use.
    known.delete(credentialId)
    if (current) known.set(credentialId, { windows: windowsOf(current, now), revision: current.revision })
    if (current === undefined) known.set(credentialId, { windows, revision: revisionAfter(change) })
  }
  for (const quietest of known.keys()) {
    if (known.size <= MAX_KNOWN) break
    known.delete(quietest)
  }
  return new Set(lost.keys())
}

function classesOf(rateClass: RateClass): RateClass[] {
  return rateClass === 'requests' ? ['requests'] : ['requests', rateClass]
}

/** Of several limits that are used up the one that takes longest: before it no retry succeeds. */
function refusalOf(windows: Windows, rates: Rates, asked: RateClass, nowMs: number): Refusal | null {
  const waits = classesOf(asked).map((rateClass) => {
    return { rateClass, waitMs: waitMs(windows[rateClass], rates[rateClass], nowMs) }
  })
  const longest = waits.reduce((one, other) => (other.waitMs > one.waitMs ? other : one))
  return longest.waitMs > 0 ? longest : null
}

function withCallOf(windows: Windows, asked: RateClass, nowMs: number): Windows {
  const counted = classesOf(asked).map((rateClass) => [rateClass, withCall(windows[rateClass], nowMs)])
  return { ...windows, ...(Object.fromEntries(counted) as Partial<Windows>) }
}

function toChange(
  { credentialId, windows, revision }: { credentialId: string } & Known,
  now: Moment,
): RateWindowChange {
  const spent = rateClasses.flatMap((rateClass) => {
    const bursts = windows[rateClass].map(([endsMs, calls]) => [endsMs - now.ms, calls] as const)
    return bursts.length === 0 ? [] : [[rateClass, bursts] as const]
  })
  return { credentialId, spentAt: now.at, spent: Object.fromEntries(spent), revision }
}

function windowsOf({ spentAt, spent }: RateWindowRow, now: Moment): Windows {
  // A process that has not followed a jump of the wall clock yet may find it ahead: nobody is held up for that.
  const spentMs = now.ms + Math.min(0, spentAt.getTime() - now.at.getTime())
  const read = (rateClass: RateClass): RateWindow =>
    (spent[rateClass] ?? []).map(([lastsMs, calls]) => [spentMs + lastsMs, calls] as const)
  return { requests: read('requests'), creations: read('creations'), execs: read('execs') }
}
