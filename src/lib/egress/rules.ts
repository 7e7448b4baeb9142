// What a unit may reach: its rules, what they allow, and which rules are within others. Pure.

import {
  type EgressEntry,
  addressNumber,
  canonicalHostName,
  formatEgressEntry,
  parseDeniedRange,
  parseEgressEntry,
  type RangeEntry,
} from './entry.ts'

/** `open`: every public host. `listed`: what `allow` names. `none`: no public host. From wide to narrow. */
export const egressModes = ['open', 'listed', 'none'] as const
export type EgressMode = (typeof egressModes)[number]

/** Which units of its team a unit may reach: all, those of its stack, or none. From wide to narrow. */
export const siblingScopes = ['team', 'stack', 'none'] as const
export type SiblingScope = (typeof siblingScopes)[number]

/**
 * `allow` is empty unless the mode is `listed`; its entries are canonical (entry.ts). `deny`: ranges that are refused whatever else
 * allows them; absent for none.
 */
export type EgressRules = {
  mode: EgressMode
  allow: string[]
  deny?: string[] | undefined
  siblings: SiblingScope
}

export const openEgress: EgressRules = { mode: 'open', allow: [], siblings: 'team' }

/** Returns what the entries stand for, presets expanded. Throws InvalidEgressEntry. */
export function parseAllowed(allow: readonly string[]): EgressEntry[] {
  return allow.flatMap(parseEgressEntry)
}

/** Returns the entry that allows a host's name at a port, or null if none does. */
export function entryForName(
  entries: readonly EgressEntry[],
  host: string,
  port: number,
): EgressEntry | null {
  const name = canonicalHostName(host)
  if (name === null) return null
  return (
    entries.find((entry) => entry.kind === 'name' && entry.ports.includes(port) && namesHost(entry, name)) ??
    null
  )
}

/** Returns the ports at which a name may be reached: empty if no entry names it. */
export function portsForName(entries: readonly EgressEntry[], host: string): number[] {
  const name = canonicalHostName(host)
  if (name === null) return []
  const ports = entries.flatMap((entry) =>
    entry.kind === 'name' && namesHost(entry, name) ? [...entry.ports] : [],
  )
  return [...new Set(ports)]
}

/** Returns the entry that allows an IPv4 address at a TCP port, or by another protocol if that is null; null if none does. */
export function entryForAddress(
  entries: readonly EgressEntry[],
  address: string,
  port: number | null,
): EgressEntry | null {
  const allows = (entry: EgressEntry) =>
    entry.kind === 'range' && (entry.port === null || entry.port === port) && hasAddress(entry, address)
  return entries.find(allows) ?? null
}

/** Returns the denied range that has an IPv4 address, as it is written; null if none has. */
export function deniedRangeOf({ deny = [] }: Pick<EgressRules, 'deny'>, address: string): string | null {
  return deny.find((text) => hasAddress(parseDeniedRange(text), address)) ?? null
}

function hasAddress({ first, last }: RangeEntry, address: string): boolean {
  const number = addressNumber(address)
  return number !== null && first <= number && number <= last
}

/** Returns whether rules allow nothing that the bound does not allow. */
export function isWithin(rules: EgressRules, bound: EgressRules): boolean {
  if (siblingScopes.indexOf(rules.siblings) < siblingScopes.indexOf(bound.siblings)) return false
  if (rules.mode === 'none') return true
  const denied = (rules.deny ?? []).map(parseDeniedRange)
  if (!(bound.deny ?? []).every((text) => isCovered(parseDeniedRange(text), denied))) return false
  if (bound.mode === 'open') return true
  if (rules.mode === 'open' || bound.mode === 'none') return false
  const allowed = parseAllowed(bound.allow)
  return parseAllowed(rules.allow).every((entry) => isCovered(entry, allowed))
}

/** Returns the widest rules that are within both. */
export function narrowest(one: EgressRules, other: EgressRules): EgressRules {
  const siblings =
    siblingScopes[Math.max(...[one, other].map((rules) => siblingScopes.indexOf(rules.siblings)))]
  if (one.mode === 'none' || other.mode === 'none')
    return { mode: 'none', allow: [], siblings: siblings ?? 'none' }
  const deny = [...new Set([...(one.deny ?? []), ...(other.deny ?? [])])]
  const shared = { siblings: siblings ?? 'none', ...(deny.length > 0 && { deny }) }
  const left = { ...one, ...shared }
  const right = { ...other, ...shared }
  if (isWithin(left, right)) return left
  if (isWithin(right, left)) return right
  const others = parseAllowed(other.allow)
  const both = parseAllowed(one.allow).flatMap((entry) => others.flatMap((next) => overlapOf(entry, next)))
  return { mode: 'listed', allow: [...new Set(both.map(formatEgressEntry))], ...shared }
}

function namesHost(entry: EgressEntry, name: string): boolean {
  if (entry.kind !== 'name') return false
  return entry.below ? name.endsWith(`.${entry.name}`) : name === entry.name
}

function isCovered(entry: EgressEntry, allowed: readonly EgressEntry[]): boolean {
  if (entry.kind === 'range') {
    const holds = (other: EgressEntry) =>
      other.kind === 'range' &&
      (other.port === null || other.port === entry.port) &&
      other.first <= entry.first &&
      entry.last <= other.last
    return allowed.some(holds)
  }
  return entry.ports.every((port) =>
    allowed.some((other) =>
      overlapOf({ ...entry, ports: [port] }, other).some((part) => isSame(part, entry)),
    ),
  )
}

function isSame(part: EgressEntry, entry: EgressEntry): boolean {
  return (
    part.kind === 'name' && entry.kind === 'name' && part.name === entry.name && part.below === entry.below
  )
}

/** Returns what two entries both allow: nothing, or an entry for each port or for all. */
function overlapOf(one: EgressEntry, other: EgressEntry): EgressEntry[] {
  if (one.kind === 'range' && other.kind === 'range') {
    // Ranges are of powers of two, so one holds the other or they are apart.
    const [wide, narrow] = one.last - one.first >= other.last - other.first ? [one, other] : [other, one]
    const port = narrow.port ?? wide.port
    const holds =
      (wide.port === null || wide.port === port) && wide.first <= narrow.first && narrow.last <= wide.last
    return holds ? [{ ...narrow, port }] : []
  }
  if (one.kind !== 'name' || other.kind !== 'name') return []
  const ports = one.ports.filter((port) => other.ports.includes(port))
  const name = overlapOfNames(one, other)
  if (name === null || ports.length === 0) return []
  return [{ kind: 'name', ...name, ports }]
}

type Name = { name: string; below: boolean }

function overlapOfNames(one: Name, other: Name): Name | null {
  if (one.name === other.name && one.below === other.below) return { name: one.name, below: one.below }
  const [deep, shallow] = one.name.length >= other.name.length ? [one, other] : [other, one]
  const isBelow = shallow.below && deep.name.endsWith(`.${shallow.name}`)
  return isBelow ? { name: deep.name, below: deep.below } : null
}
