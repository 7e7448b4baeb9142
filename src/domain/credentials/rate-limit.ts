// Rate limits of credentials (spec 8), exact also over a restart of the server. Each call is counted in the database before
// it does anything, in one statement with all calls that arrived meanwhile. Counts only grow within a window, so a
// credential known to be over its limit is refused from memory without a statement. The exception is a refused
// creation, which is given back (decisions/limits.md): a credential that has used up its creations is therefore checked in
// the database again, at most once a second.

import type { App } from '../../app.ts'
import { limitReached } from '../../contract/errors.ts'
import { type Policy, type RateClass, rateClasses } from '../../contract/policy.ts'
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
import type { Caller } from './caller.ts'
import { type Rates, ratesOf } from './rates.ts'
import { type RateWindow, spentOf, waitMs, withCall, withoutCall } from './rate-window.ts'

export type RateLimits = {
  /** Says what the policy of a credential has. Until it is said, the rates of the service hold. */
  learn(credentialId: string, own: Policy['rates']): void
  /**
   * Counts a call, or throws `rateLimited` and counts nothing. For a creation it only counts the request, because an
   * invalid creation makes nothing.
   */
  spend(credentialId: string, rateClass: RateClass): Promise<void>
  /**
   * Counts a creation, or throws `rateLimited`. Returns a function that gives it back; call it once if nothing was
   * made.
   */
  spendCreation(credentialId: string): Promise<() => Promise<void>>
}

type Needs = Pick<App, 'db' | 'clock' | 'config'>
/** A call passes only if all its limits have room. `countedMs`: when the creation to give back was counted. */
type Call = { credentialId: string } & (
  | { kind: 'spend'; rates: Rates; needs: readonly RateClass[]; counts: readonly RateClass[] }
  | { kind: 'giveBack'; countedMs: number }
)
type Refusal = { rateClass: RateClass; waitMs: number }
type Outcome = { refusal: Refusal } | { refusal: null; countedMs: number }
type Windows = Record<RateClass, RateWindow>
/** The windows of a credential, in monotonic time, and their revision in the database; null if there is no row. */
type Known = { windows: Windows; revision: number | null; asOfMs: number }
type Changed = { credentialId: string } & Pick<Known, 'windows' | 'revision'>
/** One instant by both clocks. Rows use the wall clock, and are shifted when it jumps. */
type Moment = { at: Date; ms: number }

const nothing: Windows = { requests: [], creations: [], execs: [] }

/** Above this number, the credential that was idle longest is dropped and read again when needed. */
const MAX_KNOWN = 10_000
/** Longer than any window. */
const FORGET_AFTER_MS = 10 * MINUTE
const LOOK_EVERY_MS = SECOND

export function createRateLimits(needs: Needs): RateLimits {
  const known = new Map<string, Known>()
  /** Of the credentials whose policy has rates. */
  const own = new Map<string, Rates>()
  const ratesFor = (credentialId: string) => own.get(credentialId) ?? needs.config.rates
  const count = batched((calls: Call[]) => countTogether(needs, known, calls))
  const spend = async (credentialId: string, wants: Pick<Call & { kind: 'spend' }, 'needs' | 'counts'>) => {
    const rates = ratesFor(credentialId)
    const outcome = await count({ credentialId, kind: 'spend', rates, ...wants })
    if (outcome.refusal) return refuse(rates, outcome.refusal)
    return outcome.countedMs
  }
  return {
    learn: (credentialId, rates) => {
      own.delete(credentialId)
      if (Object.keys(rates).length > 0) own.set(credentialId, ratesOf(needs, rates))
      if (own.size > MAX_KNOWN) own.delete(own.keys().next().value ?? '')
    },
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

/** Returns what is left of each rate, and when the whole limit is available again. */
export async function readRates(
  needs: Needs,
  { credentialId, policy }: Pick<Caller, 'credentialId' | 'policy'>,
): Promise<{ name: RateClass; limit: number; remaining: number; resetsAt: string }[]> {
  const row = await findRateWindow(needs.db, credentialId)
  const now = momentOf(needs.clock)
  const rates = ratesOf(needs, policy.rates)
  const windows = row ? windowsOf(row, now) : nothing
  return rateClasses.map((name) => {
    const { calls, untilMs } = spentOf(windows[name], now.ms)
    const limit = rates[name]
    const resetsAt = new Date(now.at.getTime() + untilMs - now.ms).toISOString()
    return { name, limit, remaining: Math.max(0, limit - calls), resetsAt }
  })
}

/** One run of the background job that deletes old rows. */
export async function forgetOldRates({ db, clock }: Pick<App, 'db' | 'clock'>): Promise<void> {
  const unusedSince = new Date(clock.now().getTime() - FORGET_AFTER_MS)
  await deleteRateWindows(db, { unusedSince, limit: 1000 })
}

const momentOf = (clock: Needs['clock']): Moment => ({ at: clock.now(), ms: clock.monotonicMs() })

function refuse(rates: Rates, { rateClass, waitMs: wait }: Refusal): never {
  const retryAfterS = Math.ceil(wait / SECOND)
  const limit = `${rates[rateClass]} ${rateClass} a minute`
  throw limitReached(limit, retryAfterS)
}

/**
 * Returns the outcome of each call, in order. A process runs one of these at a time, so the known counts do not
 * change meanwhile.
 */
async function countTogether(
  { db, clock }: Needs,
  known: Map<string, Known>,
  calls: Call[],
): Promise<Outcome[]> {
  const outcomes = new Map<Call, Outcome>()
  let open = Map.groupBy(calls, ({ credentialId }) => credentialId)
  while (open.size > 0) {
    await lookAgain(db, clock, known, open)
    const now = momentOf(clock)
    const changes = [...open].flatMap(([credentialId, asked]) => {
      const { windows: before, revision } = known.get(credentialId) ?? { windows: nothing, revision: null }
      let windows = before
      for (const call of asked) {
        const judged = judge(windows, call, now.ms)
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

function judge(windows: Windows, call: Call, nowMs: number): { outcome: Outcome; windows: Windows } {
  const passes: Outcome = { refusal: null, countedMs: nowMs }
  if (call.kind === 'giveBack') {
    const creations = withoutCall(windows.creations, call.countedMs)
    return { outcome: passes, windows: creations === windows.creations ? windows : { ...windows, creations } }
  }
  const refusal = refusalOf(windows, call.rates, call.needs, nowMs)
  if (refusal) return { outcome: { refusal }, windows }
  const counted = call.counts.map((rateClass) => [rateClass, withCall(windows[rateClass], nowMs)])
  return {
    outcome: passes,
    windows: { ...windows, ...(Object.fromEntries(counted) as Partial<Windows>) },
  }
}

/**
 * Reads the credentials again for which another process may have given creations back, or whose window to give back
 * is unknown.
 */
async function lookAgain(
  db: Needs['db'],
  clock: Needs['clock'],
  known: Map<string, Known>,
  open: Map<string, Call[]>,
): Promise<void> {
  const nowMs = clock.monotonicMs()
  const unsure = [...open].filter(([credentialId, asked]) => {
    const mine = known.get(credentialId)
    if (!mine) return asked.some(({ kind }) => kind === 'giveBack')
    const most = asked.flatMap((call) =>
      call.kind === 'spend' && call.needs.includes('creations') ? [call.rates.creations] : [],
    )[0]
    if (most === undefined || nowMs - mine.asOfMs < LOOK_EVERY_MS) return false
    return waitMs(mine.windows.creations, most, nowMs) > 0
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

/** Returns the credentials that another process has counted for in the meantime: their calls must be judged again. */
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
    // Deleting and setting an entry moves it to the end, so the map is in order of last use.
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

/** If several limits are used up, the error names the one that takes longest: an earlier retry would fail. */
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
  // A process that has not followed a jump of the wall clock yet may find this in the future: it must not delay a
  // caller.
  const spentMs = now.ms + Math.min(0, spentAt.getTime() - now.at.getTime())
  const read = (rateClass: RateClass): RateWindow =>
    (spent[rateClass] ?? []).map(([lastsMs, calls]) => [spentMs + lastsMs, calls] as const)
  return { requests: read('requests'), creations: read('creations'), execs: read('execs') }
}
