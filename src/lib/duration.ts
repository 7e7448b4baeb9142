// Sleep windows: `never`, or a number followed by m, h or d (spec 2.1).

import { DAY, HOUR, MINUTE } from './clock.ts'

export const sleepWindowPattern = /^(?:never|[1-9][0-9]{0,4}[mhd])$/

const unitMs: Record<string, number> = { m: MINUTE, h: HOUR, d: DAY }

/** Milliseconds of a window that matches the pattern; Infinity for `never`, so that windows compare. */
export function sleepWindowMs(window: string): number {
  if (window === 'never') return Infinity
  const unit = unitMs[window.slice(-1)]
  const count = Number(window.slice(0, -1))
  if (!sleepWindowPattern.test(window) || unit === undefined) throw new Error(`not a sleep window: ${window}`)
  return count * unit
}

export function shortestWindow(first: string, ...others: string[]): string {
  return others.reduce((best, other) => (sleepWindowMs(other) < sleepWindowMs(best) ? other : best), first)
}
