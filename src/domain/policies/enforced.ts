// Accepts rules only if the engine enforces them: an unenforced rule would be worse than none.

import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import type { EgressRules } from '../../lib/egress/rules.ts'
import { storedEgress } from '../../store/egress.ts'

/** Throws `validation` for rules that this service could not enforce. */
export async function checkEnforced(
  app: App,
  rules: EgressRules | undefined,
  path = 'egress',
): Promise<void> {
  if (rules === undefined || storedEgress(rules) === null) return
  const hosts = app.fleet.hosts().filter(({ awaySince, isLost }) => awaySince === null && !isLost)
  const capabilities = await Promise.all(hosts.map(({ engine }) => engine.capabilities()))
  if (capabilities.every(({ egress }) => egress === true)) return
  const message =
    'cannot be enforced by this service; leave it out, or send the mode "open" with the siblings "team"'
  throw validation([{ path, message }])
}
