// Which of the team's secrets a credential may bind to units (decisions/brokered-secrets.md). Pure: throws or returns.

import { policyViolation } from '../../contract/errors.ts'
import type { Policy } from '../../contract/policy.ts'
import { EVERY_SECRET } from '../../contract/secret.ts'

type Allowed = Policy['allowedSecrets']

export function mayBind(allowed: Allowed, name: string): boolean {
  return allowed.includes(EVERY_SECRET) || allowed.includes(name)
}

/** Throws `policy_violation` if a unit binds a secret that the credential may not bind. */
export function checkSecrets({ policy }: { policy: Pick<Policy, 'allowedSecrets'> }, asked: string[]): void {
  const allowed = policy.allowedSecrets
  const [beyond] = asked.filter((name) => !mayBind(allowed, name))
  if (beyond === undefined) return
  const list = allowed.length === 0 ? 'none' : allowed.join(', ')
  throw policyViolation(
    `The unit would use the team's secret ${beyond}, and this credential may use ${list}. Leave it out of "env", or ask an owner or admin of the team to allow it.`,
    { field: 'allowedSecrets', asked, allowed },
  )
}
