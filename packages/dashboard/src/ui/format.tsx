// Money, time and sizes as people read them. The exact value is in the tooltip.

import { useSyncExternalStore } from 'react'

/** `€0.84`. A cent that is not whole is `less than €0.01`; only a balance goes below nothing. */
export function money(exactCents: number, less = 'less than'): string {
  const cents = isNothing(exactCents) ? 0 : exactCents
  if (cents > 0 && cents < 1) return `${less} €0.01`
  if (cents < 0 && cents > -1) return 'just below €0.00'
  return euros(cents)
}

const isNothing = (cents: number) => Math.abs(cents) < 1e-6

// Made once: a formatter costs more than what it formats.
const digits = {
  some: new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 }),
  all: new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 8 }),
  none: new Intl.NumberFormat('en'),
}

const euros = (cents: number, shown = digits.some) =>
  `${cents < 0 ? '−' : ''}€${shown.format(Math.abs(cents) / 100)}`

/** `10,000`. */
export const count = (number: number) => digits.none.format(number)

/** An amount with all its digits in the tooltip. `short` is for columns: `< €0.01`. */
export function Money({ cents, short = false }: { cents: number; short?: boolean }) {
  const text = money(cents, short ? '<' : undefined)
  const exact = euros(isNothing(cents) ? 0 : cents, digits.all)
  return <span title={exact === text ? undefined : exact}>{text}</span>
}

/** `0.5 cents an hour`. */
export function rate(centsPerHour: number): string {
  return centsPerHour >= 100
    ? `${money(centsPerHour)} an hour`
    : `${Number(centsPerHour.toFixed(2))} cents an hour`
}

export function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = count
  let at = 0
  while (value >= 1000 && at < units.length - 1) {
    value /= 1024
    at += 1
  }
  return `${at === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[at]}`
}

/** `3 s`, `14 min`, `2 h`, `5 days`. */
export function span(ms: number): string {
  const seconds = Math.round(Math.abs(ms) / 1000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** The hour of the day. */
export const timeOfDay = (at: string) => clock.format(new Date(at))

// One timer for every time that is shown.
let now = Date.now()
const watchers = new Set<() => void>()
setInterval(() => {
  now = Date.now()
  for (const watcher of watchers) watcher()
}, 10_000)

export function useNow(): number {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => now,
  )
}

/** `2 h ago`, `in 14 min`. */
export function Time({ at }: { at: string }) {
  const ms = new Date(at).getTime() - useNow()
  const text = Math.abs(ms) < 10_000 ? 'now' : ms < 0 ? `${span(ms)} ago` : `in ${span(ms)}`
  return (
    <time dateTime={at} title={exact.format(new Date(at))}>
      {text}
    </time>
  )
}
