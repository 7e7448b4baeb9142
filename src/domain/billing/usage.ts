// GET /v1/usage: the usage of each day in UTC up to today.

import type { App } from '../../app.ts'
import type { Size } from '../../contract/policy.ts'
import type { Usage, UsageQuery } from '../../contract/usage.ts'
import { DAY, SECOND } from '../../lib/clock.ts'
import { toCents } from '../../lib/money.ts'
import { listUsage, type UsageOfDay } from '../../store/usage.ts'
import type { Caller } from '../credentials/caller.ts'

export async function getUsage(app: App, { teamId }: Caller, { days }: UsageQuery): Promise<Usage> {
  const now = app.clock.now()
  const dates = Array.from({ length: days }, (_, back) => dateOf(now.getTime() - back * DAY)).toReversed()
  const used = await listUsage(app.db, { teamId, firstDay: dates[0] ?? dateOf(now.getTime()), now })
  // If the clock was set back, there can be days in the future.
  const shown = used.filter(({ day }) => dates.includes(day))
  return {
    days: dates.map((date) =>
      showDay(
        date,
        shown.filter(({ day }) => day === date),
      ),
    ),
    totalCents: costOf(shown),
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
