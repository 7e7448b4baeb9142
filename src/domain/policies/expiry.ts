// Checks the expiry of a new policy.

import { validation } from '../../contract/errors.ts'
import type { Policy } from '../../contract/policy.ts'

/**
 * Returns the time in UTC, as all times are shown. Throws `validation` for a time in the past: revoking is a call of
 * its own.
 */
export function laterExpiry(expiresAt: Policy['expiresAt'], now: Date): Policy['expiresAt'] {
  if (expiresAt === null) return null
  const at = new Date(expiresAt)
  if (at > now) return at.toISOString()
  const message = `must be later than now, ${now.toISOString()}; to end a key at once, revoke it`
  throw validation([{ path: 'policy.expiresAt', message }])
}
