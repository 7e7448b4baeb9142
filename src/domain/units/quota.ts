// GET /v1/quota: what the caller's credential may still spend and run.

import type { App } from '../../app.ts'
import type { Quota } from '../../contract/quota.ts'
import { shortestWindow } from '../../lib/duration.ts'
import { toCents } from '../../lib/money.ts'
import { findActiveUnits } from '../../store/active-units.ts'
import { findSpending } from '../../store/spending.ts'
import { nextMidnight } from '../billing/spending-limits.ts'
import { sizeNanoCentsPerHour } from '../billing/prices.ts'
import type { Caller } from '../credentials/caller.ts'
import { readRates } from '../credentials/rate-limit.ts'
import { longestSleep } from '../policies/check.ts'
import { egressBound } from '../policies/egress.ts'
import { diskGbOf } from '../teams/plan-limits.ts'
import { promisedDiskGb } from './admission/disk-limits.ts'

export async function getQuota(app: App, caller: Caller): Promise<Quota> {
  const { teamId, credentialId, policy, plan } = caller
  const now = app.clock.now()
  const [spending, { live, teamEgress }, promisedGb, rates] = await Promise.all([
    findSpending(app.db, { teamId, credentialId, now, sizePrices: sizeNanoCentsPerHour }),
    findActiveUnits(app.db, { teamId, heldBy: credentialId }),
    promisedDiskGb(app.db, teamId),
    readRates(app, caller),
  ])
  return {
    units: { live, max: policy.maxConcurrentUnits },
    disk: { promisedGb, maxGb: diskGbOf[plan] },
    spendToday: {
      cents: toCents(spending.spentToday),
      capCents: spending.capCents === null ? null : Number(spending.capCents),
      resetsAt: nextMidnight(now).toISOString(),
    },
    creditBalanceCents: toCents(spending.balanceNanoCents),
    allowedSizes: policy.allowedSizes,
    allowedRegistries: policy.allowedRegistries,
    maxSleep: shortestWindow(policy.maxSleep, longestSleep({ plan, sleepMax: app.config.sleepMax })),
    expiresAt: policy.expiresAt,
    egress: egressBound({ policy, teamEgress }),
    allowedSecrets: policy.allowedSecrets,
    allowNested: policy.allowNested,
    rates,
  }
}
