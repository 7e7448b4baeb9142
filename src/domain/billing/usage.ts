// GET /v1/usage: the usage of each day in UTC up to today.

import type { App } from '../../app.ts'
import type { Size } from '../../contract/policy.ts'
import type { Usage, UsageQuery } from '../../contract/usage.ts'
import { DAY, SECOND } from '../../lib/clock.ts'
import { toCents } from '../../lib/money.ts'
import { type CostOfPart, listCostsOfParts, listUsage, type UsageOfDay } from '../../store/usage.ts'
import type { Caller } from '../credentials/caller.ts'

/** The others are one sum. */
const PARTS = 10

export async function getUsage(app: App, { teamId }: Caller, { days, by }: UsageQuery): Promise<Usage> {
  const now = app.clock.now()
  const dates = Array.from({ length: days }, (_, back) => dateOf(now.getTime() - back * DAY)).toReversed()
  const since = { teamId, firstDay: dates[0] ?? dateOf(now.getTime()), now }
  const [used, costs] = await Promise.all([
    listUsage(app.db, since),
    by === undefined ? null : listCostsOfParts(app.db, by, since),
  ])
  // If the clock was set back, there can be days in the future.
  const shown = used.filter(({ day }) => dates.includes(day))
  const parts = costs && costs.filter(({ day }) => dates.includes(day))
  const greatest = parts && idsByCost(parts).slice(0, PARTS)
  return {
    days: dates.map((date) => ({
      ...showDay(
        date,
        shown.filter(({ day }) => day === date),
      ),
      ...(parts &&
        greatest &&
        showParts(
          parts.filter(({ day }) => day === date),
          greatest,
        )),
    })),
    totalCents: costOf(shown),
  }
}

function idsByCost(costs: CostOfPart[]): string[] {
  const sums = new Map<string, bigint>()
  for (const { id, nanoCents } of costs) sums.set(id, (sums.get(id) ?? 0n) + nanoCents)
  const sorted = [...sums].sort(([one, cost], [other, costToo]) =>
    cost === costToo ? one.localeCompare(other) : costToo > cost ? 1 : -1,
  )
  return sorted.map(([id]) => id)
}

/** Of one day. */
function showParts(
  costs: CostOfPart[],
  greatest: string[],
): Pick<Usage['days'][number], 'parts' | 'restCents'> {
  const rest = costs.filter(({ id }) => !greatest.includes(id))
  return {
    parts: greatest.flatMap((id) =>
      costs
        .filter((cost) => cost.id === id && cost.nanoCents > 0n)
        .map(({ name, nanoCents }) => ({ id, name, costCents: toCents(nanoCents) })),
    ),
    restCents: toCents(rest.reduce((sum, { nanoCents }) => sum + nanoCents, 0n)),
  }
}

function showDay(date: string, used: UsageOfDay[]): Usage['days'][number] {
  const secondsOf = (size: Size) => {
    const ran = used.filter((each) => each.kind === 'compute' && each.size === size)
    return ran.reduce((sum, { ms }) => sum + Number(ms), 0) / SECOND
  }
  return {
    date,
    costCents: costOf(used),
    unitSeconds: {
      nano: secondsOf('nano'),
      small: secondsOf('small'),
      medium: secondsOf('medium'),
      large: secondsOf('large'),
    },
  }
}

function costOf(used: UsageOfDay[]): number {
  return toCents(used.reduce((sum, { nanoCents }) => sum + nanoCents, 0n))
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
