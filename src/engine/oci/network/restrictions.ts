// What machines may reach, as elements of the firewall's sets (firewall-rules.ts). Pure.

import type { MachineEgress } from '../../egress.ts'
import { formatEgressEntry, portsByName } from '../../../lib/egress/entry.ts'
import { deniedRangeOf, entryForAddress, parseAllowed, portsForName } from '../../../lib/egress/rules.ts'

/** A name's address at a port. `name`: null for one that an earlier engine pinned. */
export type Pin = { name: string | null; address: string; port: number }

/** One machine's. `stack`: a number for the text, as marks are. */
export type Restriction = { egress: MachineEgress; stack: number | null; pins: Pin[] }

/** A set or map of the table, and one element of it. */
export type Element = { set: string; element: string }

/**
 * One set for each length of a prefix, of what a machine may reach at a port, at all, and of what it is denied. A set of intervals
 * could hold them all, but the kernel copies all of it for each change, so that a machine with rules would make those of every
 * other machine slower (decisions/egress.md). No rule is a range of all addresses.
 */
export const rangePrefixes = Array.from({ length: 32 }, (_, longer) => longer + 1)
export const rangesOf = (prefix: number | string) => `ranges${prefix}`
export const networksOf = (prefix: number | string) => `networks${prefix}`
export const deniedOf = (prefix: number | string) => `denied${prefix}`

export const egressSets = [
  'narrowed',
  'listed',
  'apart',
  'stacks',
  'stackmates',
  'pinned',
  'deniers',
  ...[rangesOf, networksOf, deniedOf].flatMap((of) => rangePrefixes.map(of)),
  'brokers',
  'brokered',
]

const TLS_PORT = 443

/** A program may look names up for ever: the oldest pins of a machine go first. */
export const PINS_PER_MACHINE = 1024

/** Returns the elements for one machine: none if it may reach whatever an unrestricted one may. */
export function elementsOf(address: string, { egress, stack, pins }: Restriction): Element[] {
  const isListed = egress.mode !== 'open'
  const isApart = egress.siblings !== 'team'
  // One that is listed reaches every host by name, unless its address is in a range.
  const isBroker = !isListed && egress.secrets.length > 0
  const deny = egress.deny ?? []
  const of = (set: string, element: string): Element => ({ set, element })
  return [
    ...(isListed || isApart || deny.length > 0 ? [of('narrowed', address)] : []),
    ...(isListed ? [of('listed', address)] : []),
    ...(isApart ? [of('apart', address)] : []),
    // Whom it may reach, and who may reach it: one that may reach nobody is still reached by its stack.
    ...(stack !== null && egress.siblings === 'stack' ? [of('stacks', `${address} : ${stack}`)] : []),
    ...(stack === null ? [] : [of('stackmates', `${stack} . ${address}`)]),
    ...[...(isListed ? rangesIn(egress) : [])].map((range) => {
      const [network = '', prefix = '', port] = range.split(/[/:]/)
      return port === undefined
        ? of(networksOf(prefix), `${address} . ${network}`)
        : of(rangesOf(prefix), `${address} . ${network} . ${port}`)
    }),
    ...(deny.length > 0 ? [of('deniers', address)] : []),
    ...deny.map((range) => {
      const [network = '', prefix = ''] = range.split('/')
      return of(deniedOf(prefix), `${address} . ${network}`)
    }),
    ...(isListed ? pins.filter(({ port }) => port !== TLS_PORT) : []).map((pin) =>
      of('pinned', `${address} . ${pin.address} . ${pin.port}`),
    ),
    ...(isBroker ? [of('brokers', address)] : []),
    ...pins
      .filter(({ port }) => port === TLS_PORT)
      .map((pin) => of('brokered', `${address} . ${pin.address}`)),
  ]
}

/** Returns the pins that the rules still allow, and without those whose name is unknown. */
export function pinsWithin(pins: readonly Pin[], egress: MachineEgress): Pin[] {
  const portsOf = pinnedPorts(egress)
  return pins.filter(({ name, port }) => name !== null && portsOf(name).includes(port))
}

/** Returns pins for a name's addresses, at the ports at which it is not the connection that says the name. */
export function pinsFor(name: string, addresses: readonly string[], egress: MachineEgress): Pin[] {
  const ports = pinnedPorts(egress)(name)
  return addresses.flatMap((address) => ports.map((port) => ({ name, address, port })))
}

/**
 * Returns at which ports the addresses of a name are pinned. What goes to the hosts of secrets is redirected by their addresses,
 * also where a range of the rules has them.
 */
function pinnedPorts({ mode, allow, secrets }: MachineEgress): (name: string) => number[] {
  if (mode === 'none') return () => []
  const entries = parseAllowed(allow)
  const isRedirected = mode === 'open' || entries.some(({ kind }) => kind === 'range')
  return (name) => {
    const byPort = portsForName(entries, name).filter((port) => !portsByName.includes(port))
    const isHost = isRedirected && secrets.some(({ hosts }) => hosts.includes(name))
    return isHost ? [...byPort, TLS_PORT] : byPort
  }
}

/** Adds pins as the newest; one of the same address and port is replaced. */
export function withPins(pins: readonly Pin[], added: readonly Pin[]): Pin[] {
  const isNew = (pin: Pin) => !added.some(({ address, port }) => address === pin.address && port === pin.port)
  return [...pins.filter(isNew), ...added].slice(-PINS_PER_MACHINE)
}

/** Whether a direct connection to an address outside is allowed by the rules and pins. */
export function allowsDirect(
  { egress, pins }: Pick<Restriction, 'egress' | 'pins'>,
  { protocol, address, port }: { protocol: string; address: string; port: number },
): boolean {
  if (deniedRangeOf(egress, address) !== null) return false
  if (egress.mode === 'open') return true
  const isPinned = pins.some((pin) => pin.address === address && pin.port === port && port !== TLS_PORT)
  if (protocol === 'tcp' && isPinned) return true
  return entryForAddress(parseAllowed(egress.allow), address, protocol === 'tcp' ? port : null) !== null
}

/** Returns each range once, as the rules write it. */
function rangesIn({ allow }: MachineEgress): Set<string> {
  return new Set(
    parseAllowed(allow)
      .filter((entry) => entry.kind === 'range')
      .map(formatEgressEntry),
  )
}
