// One entry of a list of what may be reached, as people write it and as it is compared:
//
//   api.github.com          this name, TCP ports 80 and 443
//   *.pythonhosted.org      names below it, but not itself
//   github.com:22           this name, this port alone
//   203.0.113.0/24          these addresses, whatever is sent to them; 203.0.113.7 is 203.0.113.7/32
//   203.0.113.0/24:5432     these addresses, this TCP port
//   preset:npm              the entries of a preset (presets.ts)

import { isIP, isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'
import { privateRanges4 } from '../address-ranges.ts'
import { egressPresets, isEgressPreset } from './presets.ts'

/** `name` is in lower-case ASCII without a trailing dot. `below`: names below it, and not itself. */
export type NameEntry = { kind: 'name'; name: string; below: boolean; ports: readonly number[] }
/** `first` to `last` are IPv4 addresses as numbers, both included. `port`: one of TCP; null for all, of every protocol. */
export type RangeEntry = { kind: 'range'; first: number; last: number; port: number | null }
export type EgressEntry = NameEntry | RangeEntry

/** Ports on which a name is read from the connection itself, unless its address is in a listed range. */
export const portsByName: readonly number[] = [80, 443]

const PORT_MAX = 65_535
const NAME_MAX = 253
const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/** `message` is for the author of the entry: what is wrong and what to write. */
export class InvalidEgressEntry extends Error {}

/** Returns what an entry stands for: several for a preset. Throws InvalidEgressEntry. */
export function parseEgressEntry(text: string): EgressEntry[] {
  if (text.startsWith('preset:')) return presetEntries(text.slice('preset:'.length))
  if (text === '*') throw new InvalidEgressEntry('must be a name; for every public host send the mode "open"')
  if (text.includes('://')) throw new InvalidEgressEntry(`must be a name and no URL${nameInUrl(text)}`)
  if (!text.includes('/') && !isIPv4(text.split(':')[0] ?? '')) return [parseName(text)]
  const entry = parseRange(text)
  const inside = privateRanges4.find((range) => holdsAny(entry, range))
  if (inside === undefined) return [entry]
  throw new InvalidEgressEntry(`overlaps ${inside}, which holds no public hosts and cannot be allowed`)
}

/** Returns addresses that are denied: a range without a port. Throws InvalidEgressEntry. */
export function parseDeniedRange(text: string): RangeEntry {
  const entry = parseRange(text)
  if (entry.port !== null)
    throw new InvalidEgressEntry('must have no port: whatever is sent to these addresses is refused')
  if (entry.last - entry.first < 2 ** 32 - 1) return entry
  throw new InvalidEgressEntry('is every address: send the mode "none" instead')
}

/** Returns the entry as it is stored and shown: one text for each meaning. Throws InvalidEgressEntry. */
export function canonicalEgressEntry(text: string): string {
  const [entry] = parseEgressEntry(text)
  if (text.startsWith('preset:') || entry === undefined) return text
  return formatEgressEntry(entry)
}

export function formatEgressEntry(entry: EgressEntry): string {
  if (entry.kind === 'range') {
    const prefix = 32 - Math.log2(entry.last - entry.first + 1)
    return `${addressOf(entry.first)}/${prefix}${entry.port === null ? '' : `:${entry.port}`}`
  }
  const name = entry.below ? `*.${entry.name}` : entry.name
  return entry.ports.length === 1 ? `${name}:${entry.ports[0]}` : name
}

/**
 * Returns a host name in the one form in which names are compared: lower-case ASCII without a trailing dot. Null if
 * it can be no public host's name: an address, a single label, or text that is no name.
 */
export function canonicalHostName(text: string): string | null {
  // The parser of URLs would drop blanks and cut at these, so that two different texts became one name.
  if (/[\s/\\?#@:%[\]]/.test(text)) return null
  const ascii = domainToASCII(text).replace(/\.$/, '').toLowerCase()
  const labels = ascii.split('.')
  if (ascii.length > NAME_MAX || labels.length < 2 || isIP(ascii) !== 0) return null
  return labels.every((part) => label.test(part)) ? ascii : null
}

/** Whether a name is one of those that units have for each other. No public host has such a name (`.internal` is reserved). */
export function isUnitName(name: string): boolean {
  return name.endsWith('.internal')
}

/** Returns an IPv4 address as a number, or null if it is none. */
export function addressNumber(address: string): number | null {
  if (!isIPv4(address)) return null
  return address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
}

/** What to write instead, as the end of a sentence. */
function nameInUrl(text: string): string {
  const name = canonicalHostName(URL.parse(text)?.hostname ?? '')
  return name === null ? '' : `: write ${name}`
}

function presetEntries(name: string): EgressEntry[] {
  if (isEgressPreset(name)) return egressPresets[name].map(parseName)
  throw new InvalidEgressEntry(`is no preset; the presets are ${Object.keys(egressPresets).join(', ')}`)
}

function parseName(text: string): NameEntry {
  const { host, port } = splitPort(text)
  const below = host.startsWith('*.')
  const bare = below ? host.slice(2) : host
  const name = canonicalHostName(bare)
  if (name === null) {
    throw new InvalidEgressEntry(
      'must be a name such as api.github.com, *.pythonhosted.org or github.com:22, a range such as 203.0.113.0/24 or 203.0.113.7/32:5432, or preset:npm',
    )
  }
  return { kind: 'name', name, below, ports: port === null ? portsByName : [port] }
}

function parseRange(text: string): RangeEntry {
  const { host, port } = splitPort(text)
  const [address = '', prefixText = '32', ...more] = host.split('/')
  const network = addressNumber(address)
  const prefix = /^\d{1,2}$/.test(prefixText) ? Number(prefixText) : -1
  if (network === null || prefix < 0 || prefix > 32 || more.length > 0) {
    throw new InvalidEgressEntry('must be an IPv4 range, such as 203.0.113.0/24 or 203.0.113.7/32:5432')
  }
  const size = 2 ** (32 - prefix)
  if (network % size !== 0) {
    const start = addressOf(network - (network % size))
    const at = port === null ? '' : `:${port}`
    throw new InvalidEgressEntry(`has bits beyond its prefix: write ${start}/${prefix}${at}`)
  }
  return { kind: 'range', first: network, last: network + size - 1, port }
}

function holdsAny(entry: RangeEntry, range: string): boolean {
  const [address = '', prefix] = range.split('/')
  const first = addressNumber(address) ?? 0
  const last = first + 2 ** (32 - Number(prefix)) - 1
  return entry.first <= last && first <= entry.last
}

function splitPort(text: string): { host: string; port: number | null } {
  const at = text.lastIndexOf(':')
  if (at < 0) return { host: text, port: null }
  const digits = text.slice(at + 1)
  const port = /^[1-9]\d{0,4}$/.test(digits) ? Number(digits) : 0
  if (port < 1 || port > PORT_MAX) throw new InvalidEgressEntry(`must end with a port from 1 to ${PORT_MAX}`)
  return { host: text.slice(0, at), port }
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.')
}
