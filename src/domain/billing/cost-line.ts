// The sentence about money and sleep that a create answers with (spec 2.5), for people.

import type { Size } from '../../contract/policy.ts'
import { toCents } from '../../lib/money.ts'
import { HOURS_OF_A_MONTH, sizeNanoCentsPerHour } from './prices.ts'

export function costLine(units: { size: Size; sleep: string }[]): string {
  const perHour = units.reduce((sum, unit) => sum + toCents(sizeNanoCentsPerHour[unit.size]), 0)
  const sizes = units.map((unit) => unit.size).join(', ')
  const price = `${perHour} euro ${perHour === 1 ? 'cent' : 'cents'} an hour while running (${sizes})`
  const windows = [...new Set(units.map((unit) => unit.sleep))]
  return `${price}. ${windows.map((window) => sleepSentence(window, perHour)).join(' ')}`
}

function sleepSentence(window: string, centsPerHour: number): string {
  if (window === 'never') {
    const perMonth = (centsPerHour * HOURS_OF_A_MONTH) / 100
    return `Never sleeps: about ${perMonth.toFixed(2)} euros for 30 days.`
  }
  return `Sleeps after ${inWords(window)} without use; asleep it costs nothing for compute, keeps its disk and wakes on its next use.`
}

const words: Record<string, string> = { m: 'minute', h: 'hour', d: 'day' }

function inWords(window: string): string {
  const count = Number(window.slice(0, -1))
  const word = words[window.slice(-1)] ?? ''
  return count === 1 ? `1 ${word}` : `${count} ${word}s`
}
