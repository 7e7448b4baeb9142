// The sentence about cost and sleep in the answer to a create (spec 2.5).

import { centDigits, euroDigits, toCents } from '../../lib/money.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { HOURS_OF_A_MONTH, sizeNanoCentsPerHour, volumeNanoCentsPerGbHour } from './prices.ts'

type Priced = Pick<UnitRecord, 'size' | 'sleep' | 'spec'>

export function costLine(units: Priced[]): string {
  const perHour = centDigits(toCents(perHourOf(units)))
  const sizes = units.map((unit) => unit.size).join(', ')
  const price = `${perHour} euro ${perHour === '1' ? 'cent' : 'cents'} an hour while running (${sizes})`
  const windows = [...new Set(units.map((unit) => unit.sleep))]
  const sleeps = windows.map((window) =>
    sleepSentence(
      window,
      units.filter((unit) => unit.sleep === window),
    ),
  )
  return [`${price}.`, ...volumeSentence(units), ...sleeps].join(' ')
}

function perHourOf(units: Priced[]): bigint {
  return units.reduce((sum, unit) => sum + sizeNanoCentsPerHour[unit.size], 0n)
}

function volumeSentence(units: Priced[]): string[] {
  const gb = units.reduce((sum, { spec }) => sum + (spec.volume?.gb ?? 0), 0)
  if (gb === 0) return []
  const perMonth = centDigits(toCents(volumeNanoCentsPerGbHour * BigInt(gb * HOURS_OF_A_MONTH)))
  return [`Volumes of ${gb} GB: ${perMonth} euro cents for 30 days, awake or asleep, until destroyed.`]
}

function sleepSentence(window: string, units: Priced[]): string {
  if (window === 'never') {
    const perMonth = toCents(perHourOf(units) * BigInt(HOURS_OF_A_MONTH))
    return `Never sleeps: about ${euroDigits(perMonth)} euros for 30 days.`
  }
  return `Sleeps after ${inWords(window)} without use; asleep it costs nothing for compute, keeps its disk and wakes on its next use.`
}

const words: Record<string, string> = { m: 'minute', h: 'hour', d: 'day' }

function inWords(window: string): string {
  const count = Number(window.slice(0, -1))
  const word = words[window.slice(-1)] ?? ''
  return count === 1 ? `1 ${word}` : `${count} ${word}s`
}
