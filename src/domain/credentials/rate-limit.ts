// Rate limits of a credential (spec 8), exact over all server processes: each call is counted in the database before it
// does anything, in one statement with all that came meanwhile. Every process remembers what it wrote or was told last, and
// what is used up by that is used up, so that a flood costs no statement. A creation that was refused is given back
// (decision 88): so where creations are used up the database is asked again, once a second at most.

import type { App } from '../../app.ts'
import { rateLimited } from '../../contract/errors.ts'
import { batched } from '../../lib/concurrency/batch.ts'
import { MINUTE, SECOND } from '../../lib/clock.ts'
import {
  deleteRateWindows,
  findRateWindow,
  listRateWindows,
  type RateWindowChange,
  type RateWindowRow,
  revisionAfter,
  saveRateWindows,
} from '../../store/rate-windows.ts'
import { type RateWindow, spentOf, waitMs, withCall, withoutCall } from './rate-window.ts'

const rateClasses = ['requests', 'creations', 'execs'] as const
/** What a call counts as. Every call also counts as a request. */
export type RateClass = (typeof rateClasses)[number]

export type RateLimits = {
  /**
   * Counts a call, or throws `rateLimited`; such a call counts for nothing. Of a creation the request alone is counted:
   * what is invalid makes nothing.
   */
  spend(credentialId: string, rateClass: RateClass): Promise<void>
  /** Counts a creation, or throws `rateLimited`. Returns what gives it back, to be called once where nothing was made. */
  spendCreation(credentialId: string): Promise<() => Promise<void>>
}

type Needs = Pick<App, 'db' | 'clock' | 'config'>
type Rates = Record<RateClass, number>
/** All that it needs must be left, and what it counts is counted. `countedMs`: when what it gives back was counted. */
type Call = { credentialId: string } & (
  | { kind: 'spend'; needs: readonly RateClass[]; counts: readonly RateClass[] }
  | { kind: 'giveBack'; countedMs: number }
)
type Refusal = { rateClass: RateClass; waitMs: number }
type Outcome = { refusal: Refusal } | { refusal: null; countedMs: number }
type Windows = Record<RateClass, RateWindow>
/** By the monotonic clock, as the database had them then by this revision; null: it has none. */
type Known = { windows: Windows; revision: number | null; asOfMs: number }
type Changed = { credentialId: string } & Pick<Known, 'windows' | 'revision'>
/** One instant by both clocks. Rows go by the wall clock, and move along when that jumps. */
type Moment = { at: Date; ms: number }

const nothing: Windows = { requests: [], creations: [], execs: [] }

/** Beyond this many credentials the one that was quiet longest is asked for anew. */
const MAX_KNOWN = 10_000
/** Longer than anything counts. */
const FORGET_AFTER_MS = 10 * MINUTE
const LOOK_EVERY_MS = SECOND

export function createRateLimits(needs: Needs): RateLimits {
  const known = new Map<string, Known>()
  const count = batched((calls: Call[]) => countTogether(needs, known, calls))
  const spend = async (credentialId: string, wants: Pick<Call & { kind: 'spend' }, 'needs' | 'counts'>) => {
    const outcome = await count({ credentialId, kind: 'spend', ...wants })
    if (outcome.refusal) return refuse(needs.config.rates, outcome.refusal)
    return outcome.countedMs
  }
  return {
    spend: async (credentialId, rateClass) => {
      const all: RateClass[] = rateClass === 'requests' ? ['requests'] : ['requests', rateClass]
      await spend(credentialId, { needs: all, counts: rateClass === 'creations' ? ['requests'] : all })
    },
    spendCreation: async (credentialId) => {
      const countedMs = await spend(credentialId, { needs: ['creations'], counts: ['creations'] })
      return async () => void (await count({ credentialId, kind: 'giveBack', countedMs }))
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
  const windows = row ? windowsOf(row, now) : nothing
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
 * What becomes of each call, in order. A process does one of these at a time, so what it knows changes under nobody.
 */
async function countTogether(
  { db, clock, config }: Needs,
  known: Map<string, Known>,
  calls: Call[],
): Promise<Outcome[]> {
  const outcomes = new Map<Call, Outcome>()
  let open = Map.groupBy(calls, ({ credentialId }) => credentialId)
  while (open.size > 0) {
    await lookAgain(db, clock, known, open, config.rates)
    const now = momentOf(clock)
    const changes = [...open].flatMap(([credentialId, asked]) => {
      const { windows: before, revision } = known.get(credentialId) ?? { windows: nothing, revision: null }
      let windows = before
      for (const call of asked) {
        const judged = judge(windows, config.rates, call, now.ms)
        outcomes.set(call, judged.outcome)
        windows = judged.windows
      }
      return windows === before ? [] : [{ credentialId, windows, revision }]
    })
    const lost = await save(db, known, changes, now)
    open = new Map([...open].filter(([credentialId]) => lost.has(credentialId)))
  }
  return calls.map((call) => outcomes.get(call) ?? { refusal: null, countedMs: clock.monotonicMs() })
}

function judge(
  windows: Windows,
  rates: Rates,
  call: Call,
  nowMs: number,
): { outcome: Outcome; windows: Windows } {
  const passes: Outcome = { refusal: null, countedMs: nowMs }
  if (call.kind === 'giveBack') {
    const creations = withoutCall(windows.creations, call.countedMs)
    return { outcome: passes, windows: creations === windows.creations ? windows : { ...windows, creations } }
  }
  const refusal = refusalOf(windows, rates, call.needs, nowMs)
  if (refusal) return { outcome: { refusal }, windows }
  const counted = call.counts.map((rateClass) => [rateClass, withCall(windows[rateClass], nowMs)])
  return {
    outcome: passes,
    windows: { ...windows, ...(Object.fromEntries(counted) as Partial<Windows>) },
  }
}

/** Of those where another process may have given creations back since, or where nothing is known to give back from. */
async function lookAgain(
  db: Needs['db'],
  clock: Needs['clock'],
  known: Map<string, Known>,
  open: Map<string, Call[]>,
  rates: Rates,
): Promise<void> {
  const nowMs = clock.monotonicMs()
  const unsure = [...open].filter(([credentialId, asked]) => {
    const mine = known.get(credentialId)
    if (!mine) return asked.some(({ kind }) => kind === 'giveBack')
    const asksForMore = asked.some((call) => call.kind === 'spend' && call.needs.includes('creations'))
    if (!asksForMore || nowMs - mine.asOfMs < LOOK_EVERY_MS) return false
    return waitMs(mine.windows.creations, rates.creations, nowMs) > 0
  })
  if (unsure.length === 0) return
  const ids = unsure.map(([credentialId]) => credentialId)
  const rows = await listRateWindows(db, ids)
  const now = momentOf(clock)
  for (const credentialId of ids) {
    const row = rows.get(credentialId)
    if (row) known.set(credentialId, knownOf(row, now))
    else known.delete(credentialId)
  }
}

/** Answers the credentials that another process has counted for meanwhile: their calls are to be judged anew. */
async function save(
  db: Needs['db'],
  known: Map<string, Known>,
  changed: Changed[],
  now: Moment,
): Promise<Set<string>> {
  if (changed.length === 0) return new Set()
  const changes = changed.map((change) => toChange(change, now))
  const lost = await saveRateWindows(db, changes)
  for (const [index, change] of changes.entries()) {
    const { credentialId } = change
    const windows = changed[index]?.windows ?? nothing
    const current = lost.get(credentialId)
    // Taken out and put back, the map is in order of last use.
    known.delete(credentialId)
    if (current) known.set(credentialId, knownOf(current, now))
    if (current === undefined) {
      known.set(credentialId, { windows, revision: revisionAfter(change), asOfMs: now.ms })
    }
  }
  for (const quietest of known.keys()) {
    if (known.size <= MAX_KNOWN) break
    known.delete(quietest)
  }
  return new Set(lost.keys())
}

/** Of several limits that are used up the one that takes longest: before it no retry succeeds. */
function refusalOf(
  windows: Windows,
  rates: Rates,
  needs: readonly RateClass[],
  nowMs: number,
): Refusal | null {
  const waits = needs.map((rateClass) => {
    return { rateClass, waitMs: waitMs(windows[rateClass], rates[rateClass], nowMs) }
  })
  const longest = waits.reduce((one, other) => (other.waitMs > one.waitMs ? other : one))
  return longest.waitMs > 0 ? longest : null
}

function toChange({ credentialId, windows, revision }: Changed, now: Moment): RateWindowChange {
  const spent = rateClasses.flatMap((rateClass) => {
    const bursts = windows[rateClass].map(([endsMs, calls]) => [endsMs - now.ms, calls] as const)
    return bursts.length === 0 ? [] : [[rateClass, bursts] as const]
  })
  return { credentialId, spentAt: now.at, spent: Object.fromEntries(spent), revision }
}

function knownOf(row: RateWindowRow, now: Moment): Known {
  return { windows: windowsOf(row, now), revision: row.revision, asOfMs: now.ms }
}

function windowsOf({ spentAt, spent }: RateWindowRow, now: Moment): Windows {
  // A process that has not followed a jump of the wall clock yet may find it ahead: nobody is held up for that.
  const spentMs = now.ms + Math.min(0, spentAt.getTime() - now.at.getTime())
  const read = (rateClass: RateClass): RateWindow =>
    (spent[rateClass] ?? []).map(([lastsMs, calls]) => [spentMs + lastsMs, calls] as const)
  return { requests: read('requests'), creations: read('creations'), execs: read('execs') }
}
