// The policy that refuses nothing a plan allows: of the first key, so that a fresh install works, and of
// people's sessions, which are bounded by their plan alone (design 7).

import { defaultRegistries, type Policy, sizes } from '../../contract/policy.ts'

export const unrestrictedPolicy: Policy = {
  maxConcurrentUnits: 1_000,
  dailySpendCapCents: 1_000_000,
  allowedSizes: [...sizes],
  allowedRegistries: defaultRegistries,
  maxSleep: 'never',
  expiresAt: null,
}
