// Explains what the rules decide about one connection, in the words of their author. Pure.

import { isIP, isIPv4 } from 'node:net'
import { isPublicAddress } from '../address-ranges.ts'
import { canonicalHostName, formatEgressEntry, portsByName } from './entry.ts'
import { type EgressRules, deniedRangeOf, entryForAddress, entryForName, parseAllowed } from './rules.ts'

export type Decision = { decision: 'allowed' | 'refused'; rule: string | null; reason: string }

export function decideEgress(rules: EgressRules, host: string, port: number): Decision {
  if (isIP(host) !== 0) return decideAddress(rules, host, port)
  const name = canonicalHostName(host)
  if (name === null) {
    return refused('That is no name of a public host: write one such as api.github.com, or an IPv4 address.')
  }
  const open = withoutEntries(rules, entryFor(name, port))
  if (open !== null) return open
  const entry = entryForName(parseAllowed(rules.allow), name, port)
  if (entry !== null) return allowed(formatEgressEntry(entry))
  return refused(`No entry of "allow" names ${name} at port ${port}: add ${entryFor(name, port)}.`)
}

function decideAddress(rules: EgressRules, address: string, port: number): Decision {
  if (!isIPv4(address)) return refused('Units have no IPv6: name the host, or an IPv4 address.')
  if (!isPublicAddress(address))
    return refused(`${address} is no address of a public host, and no unit reaches it.`)
  const denied = deniedRangeOf(rules, address)
  if (denied !== null) return refused(`"deny" has ${denied}.`)
  const isByName = portsByName.includes(port)
  const open = withoutEntries(rules, isByName ? 'its name' : `${address}/32:${port}`)
  if (open !== null) return open
  const entry = entryForAddress(parseAllowed(rules.allow), address, port)
  if (entry !== null) return allowed(formatEgressEntry(entry))
  return isByName
    ? refused(
        `Ports 80 and 443 are decided by the name that the client asks for, and ${address} is none: add its name, or ${address}/32.`,
      )
    : refused(`No entry of "allow" has ${address} at port ${port}: add ${address}/32:${port}.`)
}

/** `entry`: what would have to be listed. */
function withoutEntries({ mode }: EgressRules, entry: string): Decision | null {
  if (mode === 'open')
    return { decision: 'allowed', rule: null, reason: 'The unit may reach every public host.' }
  if (mode !== 'none') return null
  return refused(
    `The unit may reach no public host: its mode is "none". Set the mode "listed", with ${entry} in "allow".`,
  )
}

function entryFor(name: string, port: number): string {
  return portsByName.includes(port) ? name : `${name}:${port}`
}

function allowed(rule: string): Decision {
  return { decision: 'allowed', rule, reason: `The entry ${rule} allows it.` }
}

function refused(reason: string): Decision {
  return { decision: 'refused', rule: null, reason }
}
