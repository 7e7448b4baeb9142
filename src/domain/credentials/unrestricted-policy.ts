// The policy that allows everything a plan allows: for the first key, so that a new installation works, and for
// people's sessions, which only their plan limits (design 7).

import { defaultRegistries, type Policy, sizes } from '../../contract/policy.ts'
import { EVERY_SECRET } from '../../contract/secret.ts'
import { openEgress } from '../../lib/egress/rules.ts'

export const unrestrictedPolicy: Policy = {
  maxConcurrentUnits: 1_000,
  dailySpendCapCents: 1_000_000,
  allowedSizes: [...sizes],
  allowedRegistries: defaultRegistries,
  maxSleep: 'never',
  expiresAt: null,
  egress: openEgress,
  allowedSecrets: [EVERY_SECRET],
  allowNested: true,
  rates: {},
}
