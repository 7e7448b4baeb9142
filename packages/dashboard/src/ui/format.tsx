// Money and time as people read them. The exact value is in the tooltip.

import { useSyncExternalStore } from 'react'
import { euros, exactEuros } from '../../../../src/lib/money.ts'
import { fromNow } from '../../../../src/lib/time-words.ts'

export { amount, rate } from '../../../../src/lib/money.ts'
export { span } from '../../../../src/lib/time-words.ts'

const whole = new Intl.NumberFormat('en')

/** `10,000`. */
export const count = (number: number) => whole.format(number)

/** An amount with all its digits in the tooltip. `short` is for columns: `< €0.0001`. */
export function Money({ cents, short = false }: { cents: number; short?: boolean }) {
  const text = euros(cents, short ? '<' : undefined)
  const exact = exactEuros(cents)
  return <span title={exact === text ? undefined : exact}>{text}</span>
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** The hour of the day. */
export const timeOfDay = (at: string) => clock.format(new Date(at))

const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

/** `Nov 28`. */
export const dayOf = (at: string) => day.format(new Date(at))

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
  const text = fromNow(at, useNow())
  return (
    <time dateTime={at} title={exact.format(new Date(at))}>
      {text}
    </time>
  )
}
