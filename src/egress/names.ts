// Resolves the names that restricted machines connect to. The address that a machine has looked up is ignored: a
// connection goes to the address that the name has now, by the DNS of this host.

import { Resolver } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'
import { isPublicAddress } from '../lib/address-ranges.ts'

export type Resolved =
  | { kind: 'addresses'; addresses: string[] }
  /** It leads to an address that no machine may reach: a private one, or one of this host. */
  | { kind: 'private' }
  | { kind: 'unknown' }

export type ResolveName = (name: string) => Promise<Resolved>

const TRY_MS = 2000
const TRIES = 2
const SHORTEST_MS = 1000
const LONGEST_MS = 30_000
const MAX_KEPT = 4096
/** Each machine has an interface: with 800 of them, reading them for each connection took a tenth of a second. */
const OWN_FOR_MS = 10_000

/** `servers`: null for those of the host. */
export function createNames({ servers }: { servers: string[] | null }): ResolveName {
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES })
  if (servers) resolver.setServers(servers)
  const ownAddresses = createOwnAddresses()
  /** One private address among others is no accident either. */
  const look = (addresses: string[]): Resolved => {
    const own = ownAddresses()
    const isRefused = addresses.some((address) => !isPublicAddress(address) || own.has(address))
    return isRefused ? { kind: 'private' } : { kind: 'addresses', addresses }
  }
  const kept = new Map<string, { until: number; addresses: string[] }>()
  const asked = new Map<string, Promise<Resolved>>()

  const ask = async (name: string): Promise<Resolved> => {
    const records = await resolver.resolve4(name, { ttl: true }).catch(() => [])
    if (records.length === 0) return { kind: 'unknown' }
    const addresses = records.map(({ address }) => address)
    const ttlMs = 1000 * Math.min(...records.map(({ ttl }) => ttl))
    const until = performance.now() + Math.min(Math.max(ttlMs, SHORTEST_MS), LONGEST_MS)
    if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value ?? '')
    kept.set(name, { until, addresses })
    return look(addresses)
  }

  return async (name) => {
    const known = kept.get(name)
    if (known && known.until > performance.now()) return look(known.addresses)
    kept.delete(name)
    const asking = asked.get(name) ?? ask(name).finally(() => asked.delete(name))
    asked.set(name, asking)
    return await asking
  }
}

/** The firewall refuses connections of this process to this host too, also to an address that is newer than this. */
function createOwnAddresses(): () => ReadonlySet<string> {
  let own: ReadonlySet<string> = new Set()
  let until = -Infinity
  return () => {
    if (performance.now() > until) {
      const interfaces = Object.values(networkInterfaces())
      own = new Set(interfaces.flatMap((each) => (each ?? []).map(({ address }) => address)))
      until = performance.now() + OWN_FOR_MS
    }
    return own
  }
}
