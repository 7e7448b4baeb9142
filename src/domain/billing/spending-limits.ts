// The limits on spending: of a credential per day, and of a team by its credits (spec 2.8, 7). Pure: throws or
// returns.

import { paymentRequired, quotaExceeded } from '../../contract/errors.ts'
import { DAY, HOUR, SECOND } from '../../lib/clock.ts'
import { centDigits, toCents, toNanoCents } from '../../lib/money.ts'
import type { Spending } from '../../store/spending.ts'

/**
 * Credits must last this long, or nothing starts and running units are stopped: it covers the time between two checks
 * of the limits, plus the heartbeat up to which meters are counted (design 8).
 */
export const RESERVED_MS = 15 * SECOND

/** Throws unless this much more per hour can be paid for. Call it with the team locked. */
export function checkSpending(spending: Spending, morePerHour: bigint, now: Date): void {
  const { capCents, spentToday, credentialPerHour } = spending
  if (morePerHour === 0n) return
  if (!lasts(leftOfTeam(spending), spending.teamPerHour + morePerHour)) {
    const balance = toCents(spending.balanceNanoCents)
    throw paymentRequired(
      `The team is out of credits: ${inCents(Math.max(0, balance))} are left. Buy credits, or ask the operator of this service. Units that slept for lack of credits then wake at their next use.`,
      { creditBalanceCents: balance },
    )
  }
  if (capCents === null) return
  if (lasts(toNanoCents(capCents) - spentToday, credentialPerHour + morePerHour)) return
  const spent = toCents(spentToday)
  const resetsAt = nextMidnight(now).toISOString()
  throw quotaExceeded(
    `This credential may spend ${inCents(Number(capCents))} a day and has spent ${inCents(spent)} today; it may spend again from ${resetsAt}.`,
    { field: 'dailySpend', spentCents: spent, capCents: Number(capCents), resetsAt },
  )
}

/** Returns when the daily spend is reset: the next midnight in UTC. */
export function nextMidnight(now: Date): Date {
  return new Date(Math.floor(now.getTime() / DAY + 1) * DAY)
}

function leftOfTeam({ paysAsItGoes, balanceNanoCents }: Spending): bigint | null {
  return paysAsItGoes ? null : balanceNanoCents
}

/** `nanoCents` null means unlimited. */
function lasts(nanoCents: bigint | null, perHour: bigint): boolean {
  return nanoCents === null || nanoCents * BigInt(HOUR) >= perHour * BigInt(RESERVED_MS)
}

function inCents(cents: number): string {
  const text = centDigits(cents)
  return `${text} euro ${text === '1' ? 'cent' : 'cents'}`
}
