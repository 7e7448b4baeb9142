// What machines may reach, as elements of the firewall's sets (firewall-rules.ts). Pure.

import type { BrokeredSecret, MachineEgress } from '../../egress.ts'
import { formatEgressEntry, portsByName } from '../../../lib/egress/entry.ts'
import { entryForAddress, parseAllowed, portsForName } from '../../../lib/egress/rules.ts'

/** A name's address at a port. `name`: null for one that an earlier engine pinned. */
export type Pin = { name: string | null; address: string; port: number }

/** One machine's. `stack`: a number for the text, as marks are. */
export type Restriction = { egress: MachineEgress; stack: number | null; pins: Pin[] }

/** A set or map of the table, and one element of it. */
export type Element = { set: string; element: string }

/**
 * One set for each length of a prefix. A set of intervals could hold them all, but the kernel copies all of it for each change, so
 * that a machine with rules would make those of every other machine slower (decisions/egress.md). No rule is a range of all
 * addresses.
 */
export const rangePrefixes = Array.from({ length: 32 }, (_, longer) => longer + 1)
export const rangesOf = (prefix: number | string) => `ranges${prefix}`

export const egressSets = [
  'narrowed',
  'listed',
  'apart',
  'stacks',
  'stackmates',
  'pinned',
  ...rangePrefixes.map(rangesOf),
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
  // One that is listed reaches every host by name.
  const isBroker = !isListed && egress.secrets.length > 0
  const of = (set: string, element: string): Element => ({ set, element })
  return [
    ...(isListed || isApart ? [of('narrowed', address)] : []),
    ...(isListed ? [of('listed', address)] : []),
    ...(isApart ? [of('apart', address)] : []),
    // Whom it may reach, and who may reach it: one that may reach nobody is still reached by its stack.
    ...(stack !== null && egress.siblings === 'stack' ? [of('stacks', `${address} : ${stack}`)] : []),
    ...(stack === null ? [] : [of('stackmates', `${stack} . ${address}`)]),
    ...[...(isListed ? rangesIn(egress) : [])].map((range) => {
      const [, network = '', prefix = '', port = ''] = /^(.+)\/(\d+):(\d+)$/.exec(range) ?? []
      return of(rangesOf(prefix), `${address} . ${network} . ${port}`)
    }),
    ...(isListed ? pins : []).map((pin) => of('pinned', `${address} . ${pin.address} . ${pin.port}`)),
    ...(isBroker ? [of('brokers', address)] : []),
    ...(isBroker ? pins.filter(({ port }) => port === TLS_PORT) : []).map((pin) =>
      of('brokered', `${address} . ${pin.address}`),
    ),
  ]
}

/** Returns the pins that the rules still allow, and without those whose name is unknown. */
export function pinsWithin(pins: readonly Pin[], { mode, allow, secrets }: MachineEgress): Pin[] {
  if (mode === 'open') return pins.filter(({ name, port }) => port === TLS_PORT && isHostOf(secrets, name))
  if (mode === 'none') return []
  const entries = parseAllowed(allow)
  const allows = (name: string, port: number) =>
    !portsByName.includes(port) && portsForName(entries, name).includes(port)
  return pins.filter(({ name, port }) => name !== null && allows(name, port))
}

/** Returns pins for a name's addresses, at the ports at which it is not the connection that says the name. */
export function pinsFor(name: string, addresses: readonly string[], egress: MachineEgress): Pin[] {
  if (egress.mode === 'open')
    return isHostOf(egress.secrets, name)
      ? addresses.map((address) => ({ name, address, port: TLS_PORT }))
      : []
  if (egress.mode === 'none') return []
  const ports = portsForName(parseAllowed(egress.allow), name).filter((port) => !portsByName.includes(port))
  return addresses.flatMap((address) => ports.map((port) => ({ name, address, port })))
}

/** Of a machine that may reach everything, what goes to the hosts of its secrets is redirected by their addresses. */
function isHostOf(secrets: readonly BrokeredSecret[], name: string | null): boolean {
  return name !== null && secrets.some(({ hosts }) => hosts.includes(name))
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
  if (egress.mode === 'open') return true
  if (protocol !== 'tcp' || portsByName.includes(port)) return false
  if (pins.some((pin) => pin.address === address && pin.port === port)) return true
  return entryForAddress(parseAllowed(egress.allow), address, port) !== null
}

/** Returns each range once, as the rules write it. */
function rangesIn({ allow }: MachineEgress): Set<string> {
  return new Set(
    parseAllowed(allow)
      .filter((entry) => entry.kind === 'range')
      .map(formatEgressEntry),
  )
}
