// Parses durations. Sleep windows are `never`, or a number followed by m, h or d (spec 2.1); settings also allow
// seconds and zero.

import { DAY, HOUR, MINUTE, SECOND } from './clock.ts'

export const sleepWindowPattern = /^(?:never|[1-9][0-9]{0,4}[mhd])$/
/** How long a unit lives: also in seconds. */
export const timeToLivePattern = /^(?:never|[1-9][0-9]{0,4}[smhd])$/

const unitMs: Record<string, number> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

/** Returns the milliseconds of a valid window; Infinity for `never`, so that windows can be compared. */
export function sleepWindowMs(window: string): number {
  if (window === 'never') return Infinity
  const unit = unitMs[window.slice(-1)]
  const count = Number(window.slice(0, -1))
  if (!sleepWindowPattern.test(window) || unit === undefined) throw new Error(`not a sleep window: ${window}`)
  return count * unit
}

/** Returns the milliseconds of a setting such as `90s` or `0s`; Infinity for `never`, null for anything else. */
export function durationMs(text: string): number | null {
  if (text === 'never') return Infinity
  const unit = unitMs[text.slice(-1)]
  return /^[0-9]{1,5}[smhd]$/.test(text) && unit !== undefined ? Number(text.slice(0, -1)) * unit : null
}

export function shortestWindow(first: string, ...others: string[]): string {
  return others.reduce((best, other) => (sleepWindowMs(other) < sleepWindowMs(best) ? other : best), first)
}
