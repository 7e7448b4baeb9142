// What a credential may spend in a day, and a team at all (spec 2.8, 7). Pure: values in, a refusal thrown or nothing.

import { paymentRequired, quotaExceeded } from '../../contract/errors.ts'
import { DAY, HOUR, SECOND } from '../../lib/clock.ts'
import { toCents, toNanoCents } from '../../lib/money.ts'
import type { Spending } from '../../store/spending.ts'

/**
 * What is left must last for so long, or nothing starts and what runs is stopped: from one look at the limits to the
 * next, with the heartbeat that tells what was counted by then (design 8).
 */
export const RESERVED_MS = 15 * SECOND

/** Whether so much more an hour may be begun. Ask with the team locked. */
export function checkSpending(spending: Spending, morePerHour: bigint, now: Date): void {
  const { capCents, spentToday, credentialPerHour } = spending
  if (morePerHour === 0n) return
  if (!lasts(leftOfTeam(spending), spending.teamPerHour + morePerHour)) {
    const balance = toCents(spending.balanceNanoCents)
    throw paymentRequired(
      `The team is out of credits: ${inCents(Math.max(0, balance))} are left. Top it up, or ask whoever runs this service to; units that were stopped then wake on their next use.`,
      { creditBalanceCents: balance },
    )
  }
  if (capCents === null) return
  if (lasts(toNanoCents(capCents) - spentToday, credentialPerHour + morePerHour)) return
  const spent = toCents(spentToday)
  const resetsAt = nextMidnight(now).toISOString()
  throw quotaExceeded(
    `This credential may spend ${inCents(Number(capCents))} a day and has spent ${inCents(spent)} today; it may again from ${resetsAt}.`,
    { field: 'dailySpend', spentCents: spent, capCents: Number(capCents), resetsAt },
  )
}

/** When a day's spending begins anew: midnight of UTC. */
export function nextMidnight(now: Date): Date {
  return new Date(Math.floor(now.getTime() / DAY + 1) * DAY)
}

function leftOfTeam({ paysAsItGoes, balanceNanoCents }: Spending): bigint | null {
  return paysAsItGoes ? null : balanceNanoCents
}

/** Null: without end. */
function lasts(nanoCents: bigint | null, perHour: bigint): boolean {
  return nanoCents === null || nanoCents * BigInt(HOUR) >= perHour * BigInt(RESERVED_MS)
}

function inCents(cents: number): string {
  const text = cents.toFixed(2).replace(/\.?0+$/, '')
  return `${text} euro ${text === '1' ? 'cent' : 'cents'}`
}
