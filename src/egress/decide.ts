// Decides whether a restricted machine may connect to a name, and to which addresses.

import { canonicalHostName, formatEgressEntry, isUnitName } from '../lib/egress/entry.ts'
import type { EgressLink } from '../lib/egress/link-client.ts'
import { deniedRangeOf, entryForName } from '../lib/egress/rules.ts'
import type { BrokeredSecret } from '../lib/egress/secrets.ts'
import type { ResolveName } from './names.ts'
import type { Refused } from './refused.ts'

export type RefusedReason =
  | 'not_listed'
  | 'no_name'
  | 'no_rules'
  | 'private_address'
  | 'unknown_name'
  | 'denied'

export type Decision =
  | { kind: 'allowed'; name: string; addresses: string[]; rule: string | null }
  | { kind: 'refused'; reason: RefusedReason; name: string | null }

export type Deciding = { link: Pick<EgressLink, 'rulesOf'>; resolve: ResolveName }

export async function decide(
  { link, resolve }: Deciding,
  machine: string,
  asked: string | null,
  port: number,
): Promise<Decision> {
  const name = asked === null ? null : canonicalHostName(asked)
  const refused = (reason: RefusedReason): Decision => ({ kind: 'refused', reason, name })
  if (link.rulesOf(machine) === null) return refused('no_rules')
  if (name === null) return refused('no_name')
  // It is asked of no nameserver, and no entry would allow it.
  if (isUnitName(name)) return refused('private_address')
  if (!isAllowed(link, machine, name, port)) return refused('not_listed')
  const resolved = await resolve(name)
  // The rules may have changed meanwhile.
  if (!isAllowed(link, machine, name, port)) return refused('not_listed')
  if (resolved.kind === 'private') return refused('private_address')
  if (resolved.kind === 'unknown') return refused('unknown_name')
  const addresses = resolved.addresses.filter((address) => !isDenied(link, machine, address))
  if (addresses.length === 0) return refused('denied')
  return { kind: 'allowed', name, addresses, rule: ruleFor(link, machine, name, port) }
}

/** The entry that allows it, as people write it; null where none is needed. */
export function ruleFor(
  link: Pick<EgressLink, 'rulesOf'>,
  machine: string,
  name: string,
  port: number,
): string | null {
  const entry = entryForName(link.rulesOf(machine)?.entries ?? [], name, port)
  return entry === null ? null : formatEgressEntry(entry)
}

export function isAllowed(
  link: Pick<EgressLink, 'rulesOf'>,
  machine: string,
  name: string,
  port: number,
): boolean {
  const rules = link.rulesOf(machine)
  if (rules === null) return false
  return rules.egress.mode === 'open' || entryForName(rules.entries, name, port) !== null
}

/** Whether the rules deny an address of a name that they allow. */
export function isDenied(link: Pick<EgressLink, 'rulesOf'>, machine: string, address: string): boolean {
  const rules = link.rulesOf(machine)
  return rules !== null && deniedRangeOf(rules.egress, address) !== null
}

/** Returns the secrets of this machine whose values may go to a host. */
export function secretsFor(
  link: Pick<EgressLink, 'rulesOf'>,
  machine: string,
  host: string,
): readonly BrokeredSecret[] {
  return link.rulesOf(machine)?.secrets.filter(({ hosts }) => hosts.includes(host)) ?? []
}

/** For the client that is refused. The name is in the form in which names are compared, so it is safe to show. */
export function notAllowed(reason: RefusedReason, name: string | null, port: number): Refused {
  return { status: 403, code: 'egress_refused', message: refusalText(reason, name, port) }
}

function refusalText(reason: RefusedReason, name: string | null, port: number): string {
  const what = name ?? 'this host'
  const sentences = {
    not_listed: `This unit may not reach ${what} at port ${port}: its egress rules do not list it. Ask the owner of the unit to allow "${what}".`,
    no_name: `This unit may reach hosts by their listed names only, and the connection names none.`,
    no_rules: `What this unit may reach is not known just now, so nothing is let through. Try again.`,
    private_address: `${what} leads to a private address, which no unit may reach.`,
    unknown_name: `${what} has no IPv4 address.`,
    denied: `${what} leads to an address that the egress rules of this unit deny.`,
  } as const satisfies Record<RefusedReason, string>
  return sentences[reason]
}
