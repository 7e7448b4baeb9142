// Policies as they are stored, completed by the schema: one stored before a field existed gets the field's default.

import { type Policy, policySchema } from '../../contract/policy.ts'

/** By their text; most calls come with one of a few. */
const known = new Map<string, Policy>()
const MAX_KNOWN_POLICIES = 1000

/** Returns the same object for the same text, so it must not be changed. Throws for what is no policy. */
export function completePolicy(stored: unknown): Policy {
  const text = JSON.stringify(stored)
  const found = known.get(text)
  if (found) return found
  const policy = policySchema.parse(stored)
  if (known.size >= MAX_KNOWN_POLICIES) known.clear()
  known.set(text, policy)
  return policy
}
