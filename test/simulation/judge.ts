// What must hold for units with any calls: how they may change, what they are billed for, and what may fail. Takes
// values, and returns a sentence for each fault.

import { AppError } from '../../src/contract/errors.ts'
import { sizeNanoCentsPerHour } from '../../src/domain/billing/prices.ts'
import { HOUR, SECOND } from '../../src/lib/clock.ts'
import { isOutage } from '../../src/store/outage.ts'
import type { Seen } from './seen.ts'

/** The allowed changes of state (spec 3 and design 4). */
const allowed = new Set(
  `creating>running creating>sleeping creating>stopped creating>error creating>destroying
  running>stopping running>stopped running>sleeping running>destroying
  stopping>stopped stopping>sleeping stopping>destroying
  stopped>starting stopped>destroying
  sleeping>starting sleeping>stopping sleeping>destroying
  starting>running starting>stopped starting>sleeping starting>destroying
  error>destroying destroying>destroyed`.split(/\s+/),
)
const reasons: Record<string, (string | null)[]> = {
  running: [null],
  stopped: ['user', 'exited'],
  sleeping: ['idle', 'provider'],
  error: [null],
  destroyed: [null],
}

export function judgeBeginning({ state }: Seen): string[] {
  return state === 'creating' ? [] : [`began as ${state}`]
}

export function judgeChange(before: Seen, now: Seen): string[] {
  const faults: string[] = []
  if (now.generation < before.generation) faults.push(`went back to run ${now.generation}`)
  if (now.charged < before.charged) faults.push('was charged, and got it back')
  if (now.state === before.state) return faults
  if (!allowed.has(`${before.state}>${now.state}`)) faults.push(`went from ${before.state} to ${now.state}`)
  const isFor = reasons[now.state]
  if (isFor && !isFor.includes(now.reason)) faults.push(`is ${now.state} for the reason ${now.reason}`)
  return faults
}

/** Copies of one fork arrive together, or none does. `states` are the states of each copy, in order. */
export function judgeFork(forkId: string, copies: { states: string[] }[]): string[] {
  const arrivals = copies.map(({ states }) => states[1])
  const isHalf =
    arrivals.includes('error') && arrivals.some((state) => state === 'running' || state === 'sleeping')
  return isHalf ? [`only some copies of ${forkId} have arrived: ${arrivals.join(', ')}`] : []
}

/**
 * A run begins when its unit is running, and ends when the unit stops running. `beats` are the heartbeats of a
 * complete server.
 */
export function judgeTimes(before: Seen, now: Seen, nowMs: number, beats: ReadonlySet<number>): string[] {
  const atMs = now.changedAt.getTime()
  const beforeMs = before.changedAt.getTime()
  const faults: string[] = []
  if (atMs < beforeMs || atMs > nowMs) faults.push('changes out of time')
  const run = now.runs.at(-1)
  if (now.state === 'running' && before.state !== 'running' && run) {
    if (run.from.getTime() !== atMs) faults.push('is not billed from when it runs')
  }
  if (before.state === 'running' && now.state !== 'running' && run?.to) {
    // A machine that ended by itself ended before that was noticed.
    const isOwnEnd = now.state === 'stopped' || now.state === 'sleeping'
    const longerMs = run.to.getTime() - atMs
    // It is billed up to a heartbeat: to the last one when the unit was not observed for long, or to one between its
    // end and the change. Whether this is exact is checked by the month (month/account.ts).
    const isProven = beats.has(run.to.getTime()) || run.to.getTime() === run.from.getTime()
    if (!isProven && (longerMs > 0 || (longerMs < 0 && !isOwnEnd)))
      faults.push(`is billed ${longerMs} ms longer than it ran`)
  }
  return faults
}

export function judgeRuns({ state, runs }: Seen): string[] {
  const faults: string[] = []
  const open = runs.filter(({ to }) => to === null).length
  if (open !== (state === 'running' ? 1 : 0)) faults.push(`is ${state} with ${open} open runs`)
  for (const [index, { from, to }] of runs.entries()) {
    const before = runs[index - 1]
    if (to && to < from) faults.push('has a run that ends before it begins')
    if (before?.to && before.to > from) faults.push('has runs that overlap')
  }
  return faults
}

/** The least time that a call waits for a unit in a transitional state. */
export const WAIT_MS = 30 * SECOND
/** The least time that a call waits for a unit that is being created. */
export const CREATING_WAIT_MS = 10 * SECOND
/** Refusals because of the call or the moment, and not because of a failure. */
const refusals = ['invalid_state', 'quota_exceeded', 'conflict', 'not_found']

/** A command that does not exist; a source that was destroyed before it was copied. */
const ownFaults = ['The unit could not be started.', 'What it was to be a copy of is gone.']

/** Every failure has a reason. In a calm schedule the reason is never the server. */
export function judgeFailure(error: unknown, isCalm: boolean, tookMs: number): string[] {
  if (!(error instanceof AppError)) return isOutage(error) ? [] : [`fails with a bug: ${String(error)}`]
  const { code, message } = error
  const isOwnFault = refusals.includes(code) || ownFaults.some((text) => message.startsWith(text))
  const isLate = code === 'unavailable' && tookMs >= WAIT_MS
  return !isCalm || isOwnFault || isLate ? [] : [`fails without any trouble: ${message}`]
}

/** Nothing is charged for time that no heartbeat of the unit's own host has proven. */
export function judgeCharges({ size, hasVolume, runs, wholeAt, charged }: Seen): string[] {
  if (hasVolume) return []
  const msOf = ({ from, to }: Seen['runs'][number]) =>
    Math.max(0, (to ?? wholeAt ?? from).getTime() - from.getTime())
  const ranMs = runs.reduce((sum, run) => sum + msOf(run), 0)
  const owed = (BigInt(ranMs) * sizeNanoCentsPerHour[size]) / BigInt(HOUR)
  return charged > owed ? [`is charged ${charged}, and its heartbeat proves ${owed}`] : []
}
