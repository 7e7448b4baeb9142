// Explains a line of the egress log to a person: the reason, and the entry that would allow it. Pure.

import { portsByName } from './entry.ts'
import type { SeenLine } from './seen.ts'

/** Returns the entry that would allow it; null if none would. */
export function entryForLine({ host, port, reason }: SeenLine): string | null {
  if (reason !== 'not_listed' || host === null) return null
  return port === null || portsByName.includes(port) ? host : `${host}:${port}`
}

export function reasonOfLine(line: SeenLine): string {
  const { host, port, rule, reason, secret } = line
  const sentences = {
    listed: `${allows(rule)}.`,
    unreachable: `${allows(rule)}, but the host did not answer.`,
    unverified: `${allows(rule)}, but its certificate cannot be verified, so it was sent nothing.`,
    not_listed: `No entry of "allow" names ${host}${port === null ? '' : ` at port ${port}`}: add ${entryForLine(line)}.`,
    no_name: 'Ports 80 and 443 are decided by the name that the client asks for, and it asked for none.',
    private_address: `${host} leads to a private address, which no unit may reach.`,
    unknown_name: `${host} has no IPv4 address.`,
    denied: `${host} leads to an address that "deny" has.`,
    siblings: 'The unit may reach no other unit: change "siblings" of its rules.',
    secret_request: `The secret ${secret} was in a request whose method or path it is not for, which was not sent.`,
    not_enforced:
      'The process that decides by name is starting or has failed: until it is back, no connection to a listed name or to the host of a secret gets through.',
    others: 'All beyond those that one minute has lines for.',
  } as const satisfies Record<SeenLine['reason'], string>
  return sentences[reason]
}

function allows(rule: string | null): string {
  return rule === null ? 'The unit may reach every public host' : `The entry ${rule} allows it`
}
