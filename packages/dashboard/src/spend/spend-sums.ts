// Computes what the spend page shows beyond the API's own numbers: this month, a forecast, how long credits last.

import type { Contract } from '@berth/sdk'

type Day = Contract.Usage['days'][number]

const RECENT_DAYS = 7

export type Outlook = {
  monthCents: number
  /** What the month comes to if the days that are left cost what the last ones did; null if nothing was spent. */
  forecastCents: number | null
  /** How long the credits last at that rate; null if nothing was spent. */
  creditDays: number | null
}

/** `days`: 31 of them or more, today last, in UTC, by the clock of the service. */
export function outlookOf(days: readonly Day[], creditCents: number): Outlook {
  const today = days.at(-1)
  const month = today?.date.slice(0, 7) ?? ''
  const monthCents = sum(days.filter(({ date }) => date.startsWith(month)).map(({ costCents }) => costCents))
  // Today is not over: only whole days say what one costs.
  const whole = days.slice(-1 - RECENT_DAYS, -1)
  const first = whole.findIndex(({ costCents }) => costCents > 0)
  const used = first < 0 ? [] : whole.slice(first)
  const todayCents = today?.costCents ?? 0
  const perDay = used.length === 0 ? todayCents : sum(used.map(({ costCents }) => costCents)) / used.length
  if (perDay === 0) return { monthCents, forecastCents: null, creditDays: null }
  const [year = 0, monthNumber = 0, dayOfMonth = 0] = (today?.date ?? '').split('-').map(Number)
  const left = new Date(Date.UTC(year, monthNumber, 0)).getUTCDate() - dayOfMonth
  return {
    monthCents,
    forecastCents: monthCents + perDay * left + Math.max(0, perDay - todayCents),
    creditDays: Math.max(0, creditCents) / perDay,
  }
}

export const sizes = ['nano', 'small', 'medium', 'large'] as const

/** How long units of each size ran in these days. */
export function hoursOf(days: readonly Day[]): { size: (typeof sizes)[number]; hours: number }[] {
  return sizes.map((size) => ({ size, hours: sum(days.map(({ unitSeconds }) => unitSeconds[size])) / 3600 }))
}

/** Without the days before the first that cost something, but a week at least. */
export function sinceFirst(days: readonly Day[]): Day[] {
  const first = days.findIndex(({ costCents }) => costCents > 0)
  return days.slice(Math.max(0, Math.min(first, days.length - RECENT_DAYS)))
}

export type Part = { id: string; name: string; costCents: number }

/** What each had of all these days, greatest first, and what was left to the others. */
export function partsOf(days: readonly Day[]): Part[] {
  const parts = new Map<string, Part>()
  for (const { id, name, costCents } of days.flatMap(({ parts: ofDay = [] }) => ofDay))
    parts.set(id, { id, name, costCents: (parts.get(id)?.costCents ?? 0) + costCents })
  const rest = sum(days.map(({ restCents = 0 }) => restCents))
  const sorted = [...parts.values()].sort((one, other) => other.costCents - one.costCents)
  return rest > 0 ? [...sorted, { id: 'rest', name: 'all others', costCents: rest }] : sorted
}

/** As a spreadsheet reads it. */
export function csvOf(days: readonly Day[]): string {
  const head = ['date', 'cost_eur', ...sizes.map((size) => `${size}_hours`)]
  const lines = days.map(({ date, costCents, unitSeconds }) => [
    date,
    (costCents / 100).toFixed(4),
    ...sizes.map((size) => (unitSeconds[size] / 3600).toFixed(4)),
  ])
  return [head, ...lines].map((line) => line.join(',')).join('\r\n')
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
