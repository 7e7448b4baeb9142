// What the requests of a machine to a host need of its secrets: made when its rules are first used, and not for each request.

import type { EgressLink, KnownRules } from '../../lib/egress/link-client.ts'
import type { BrokeredSecret } from '../../lib/egress/secrets.ts'
import { secretsFor } from '../decide.ts'
import { type Index, indexOf } from './patterns.ts'

export type Prepared = {
  /** By their placeholders; none if the machine has no secret for the host. */
  secrets: ReadonlyMap<string, BrokeredSecret>
  /** Finds placeholders, the longest that is there. */
  placeholders: RegExp
  /** Of the values; null if none is long enough to be looked for. */
  index: Index | null
}

export type PreparedSecrets = {
  of(machine: string, host: string): Prepared
  /** The rules of the machine have changed. */
  forget: (machine: string) => void
}

/** For all machines together, some megabytes. What was made first is made again when it is needed. */
const MAX_SECRETS = 1024

type Kept = { rules: KnownRules | null; hosts: Map<string, Prepared>; secrets: number }

export function prepareSecrets(link: () => Pick<EgressLink, 'rulesOf'>): PreparedSecrets {
  const kept = new Map<string, Kept>()
  let secrets = 0
  const forget = (machine: string) => {
    secrets -= kept.get(machine)?.secrets ?? 0
    kept.delete(machine)
  }
  return {
    of(machine, host) {
      const rules = link().rulesOf(machine)
      if (kept.get(machine)?.rules !== rules) forget(machine)
      const own = kept.get(machine) ?? { rules, hosts: new Map<string, Prepared>(), secrets: 0 }
      const prepared = own.hosts.get(host) ?? prepare(secretsFor(link(), machine, host))
      if (own.hosts.has(host)) return prepared
      own.hosts.set(host, prepared)
      own.secrets += prepared.secrets.size
      secrets += prepared.secrets.size
      kept.set(machine, own)
      for (const [oldest] of kept) if (secrets > MAX_SECRETS) forget(oldest)
      return prepared
    },
    forget,
  }
}

function prepare(secrets: readonly BrokeredSecret[]): Prepared {
  const texts = secrets
    .map(({ placeholder }) => placeholder)
    .toSorted((one, other) => other.length - one.length)
  return {
    secrets: new Map(secrets.map((secret) => [secret.placeholder, secret])),
    placeholders: new RegExp(texts.join('|'), 'g'),
    index: indexOf(secrets.map(({ value }) => value)),
  }
}
