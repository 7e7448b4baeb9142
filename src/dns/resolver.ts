// The DNS resolver for machines (design 3 "Network"). It identifies the client by its source address, which the
// firewall pins to the machine. Names of machines are resolved only for their own team, and `*.internal` never leaves
// this host; other names are forwarded to the host's resolvers.
//
// All input is untrusted: nothing here throws because of it, and each client has a limited share.

import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { logLimitReached } from '../lib/limit-reached.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { isPublicAddress } from '../lib/address-ranges.ts'
import { createConcurrencyLimit } from '../lib/concurrency/concurrency-limit.ts'
import { type EgressEntry, portsByName } from '../lib/egress/entry.ts'
import { type EgressRules, portsForName } from '../lib/egress/rules.ts'
import type { SeenLine } from '../lib/egress/seen.ts'
import { lineOfPin, lineOfRefusal } from './egress-log.ts'
import { createRate } from './query-limits.ts'
import { addressesIn, encodeAnswer, encodeBlocked, parseQuery, type Query } from './query.ts'
import { forward, type Upstream } from './upstream.ts'
import { type Respond, serveTcp, serveUdp } from './transports.ts'

/** Returns the address of a machine that the client may know by this name, or null. */
export type Lookup = (askerAddress: string, name: string) => Promise<string | null>

export type ResolverOptions = {
  address: string
  /** 0: any free port. */
  port: number
  lookup: Lookup
  /** For a resolver whose askers are restricted machines; null for those that may look up any name. */
  egress?: EgressNames | null
  upstreams: Upstream[]
  log: Log
  clock: Clock
}

/** What restricted machines may reach, by their address. */
export type EgressNames = {
  /** Null if it is not known. */
  rulesOf(asker: string): NamedRules | null
  /** Lets a machine reach the addresses of a name. Resolves to false, or rejects, if it cannot. */
  pin(asker: string, name: string, addresses: string[]): Promise<boolean>
  /** For the log that people read. */
  note: (asker: string, line: SeenLine) => void
}

/** `secrets`: of a machine that may reach everything, those whose hosts are reached through the egress process. */
type NamedRules = {
  egress: EgressRules
  entries: readonly EgressEntry[]
  secrets: readonly { hosts: readonly string[] }[]
}

export type Resolver = { port: number; close(): Promise<void> }

const LIMITS = {
  queriesPerSecond: 200,
  forwarded: 512,
  forwardedPerAsker: 32,
  lookupMs: 2000,
} as const

/** A machine keeps its address for its whole life, but a name can move to another machine at any time. */
const TTL_SECONDS = 5

export async function startResolver(options: ResolverOptions): Promise<Resolver> {
  const { address, log } = options
  const respond = createResponder(options)
  const udp = createSocket('udp4')
  await new Promise<void>((resolve, reject) => {
    udp.once('error', reject)
    udp.bind({ address, port: options.port, exclusive: true }, () => {
      udp.off('error', reject)
      resolve()
    })
  })
  const { port } = udp.address()
  const tcp = createServer({ allowHalfOpen: false })
  const connections = serveTcp(tcp, respond, options)
  serveUdp(udp, respond, log)
  try {
    await new Promise<void>((resolve, reject) => {
      tcp.once('error', reject)
      tcp.listen({ host: address, port, exclusive: true }, () => {
        tcp.off('error', reject)
        resolve()
      })
    })
  } catch (error) {
    udp.close()
    throw error
  }
  tcp.on('error', (error) => log.error({ err: error }, 'resolver: listening failed'))

  return {
    port,
    async close() {
      for (const socket of connections) socket.destroy()
      await Promise.all([
        new Promise<void>((resolve) => tcp.close(() => resolve())),
        new Promise<void>((resolve) => udp.close(() => resolve())),
      ])
    },
  }
}

export function createResponder({
  lookup,
  egress = null,
  upstreams,
  log,
  clock,
}: Pick<ResolverOptions, 'lookup' | 'egress' | 'upstreams' | 'log' | 'clock'>): Respond {
  const rate = createRate(LIMITS.queriesPerSecond)
  const forwarding = createConcurrencyLimit(LIMITS.forwarded, LIMITS.forwardedPerAsker)

  return async (bytes, asker, transport) => {
    if (!rate(asker)) {
      logLimitReached({ log, clock }, { bound: 'name look-ups a second', by: asker })
      return null
    }
    const parsed = parseQuery(bytes)
    if (parsed.kind === 'garbage') return null
    if (parsed.kind === 'refusal') return parsed.bytes
    const { query } = parsed
    try {
      const refusal = egress && refuseByRules(egress, asker, query, clock)
      if (refusal) return refusal
      if (isOurs(query.name)) return await answerOwn(lookup, asker, query)
      if (isPrivateReverse(query.name)) return encodeAnswer(query, 'noSuchName')
      if (!forwarding.tryAcquire(asker)) {
        const by = forwarding.count(asker) >= LIMITS.forwardedPerAsker ? asker : null
        logLimitReached({ log, clock }, { bound: 'name look-ups at once', by })
        return encodeAnswer(query, 'serverFailure')
      }
      try {
        const answer = await forward(upstreams, query, transport)
        return egress === null ? answer : await pinned(egress, asker, query, answer, clock)
      } finally {
        forwarding.release(asker)
      }
    } catch (error) {
      log.error({ err: error }, 'resolver: a query failed')
      return encodeAnswer(query, 'serverFailure')
    }
  }
}

/** Returns the answer to a restricted machine's query if it is not forwarded; null if it is. */
function refuseByRules(egress: EgressNames, asker: string, query: Query, clock: Clock): Buffer | null {
  const rules = egress.rulesOf(asker)
  if (rules === null) return encodeAnswer(query, 'serverFailure')
  const blocked = (reason: 'siblings' | 'not_listed') => {
    const line = lineOfRefusal(query, reason, clock.now())
    // A client appends the stack to every name that it does not find: that is no second one which the unit lacked.
    const isSearched = reason === 'siblings' && query.name.split('.').length > UNIT_LABELS
    if (line !== null && !isSearched) egress.note(asker, line)
    return encodeBlocked(query)
  }
  if (isOurs(query.name)) return rules.egress.siblings === 'none' ? blocked('siblings') : null
  if (rules.egress.mode === 'open' && !isHostOfSecret(rules, query.name)) return null
  if (rules.egress.mode !== 'open' && portsForName(rules.entries, query.name).length === 0)
    return blocked('not_listed')
  // No IPv6, which leads nowhere, and no records that tell clients of other ways to the host.
  return query.question.type === 'A' ? null : encodeAnswer(query, 'ok')
}

/** Passes an answer on once the machine can reach the addresses in it. */
async function pinned(
  egress: EgressNames,
  asker: string,
  query: Query,
  answer: Buffer,
  clock: Clock,
): Promise<Buffer> {
  const rules = egress.rulesOf(asker)
  if (rules === null) return encodeAnswer(query, 'serverFailure')
  const ports = portsForName(rules.entries, query.name).filter((port) => !portsByName.includes(port))
  const isPinned = rules.egress.mode === 'open' ? isHostOfSecret(rules, query.name) : ports.length > 0
  if (!isPinned) return answer
  const addresses = addressesIn(answer)
  if (addresses.length === 0) return answer
  if (await egress.pin(asker, query.name, addresses)) {
    for (const port of ports)
      egress.note(asker, lineOfPin(query, rules.entries, port, addresses, clock.now()))
    return answer
  }
  return encodeAnswer(query, 'serverFailure')
}

function isHostOfSecret({ secrets }: NamedRules, name: string): boolean {
  return secrets.some(({ hosts }) => hosts.includes(name))
}

/** Of `unit.stack.internal`. */
const UNIT_LABELS = 3

/**
 * All of `internal` is answered here, whether the name exists or not; a bare name can only be a unit of the stack.
 */
function isOurs(name: string): boolean {
  return name.endsWith('.internal') || !name.includes('.')
}

async function answerOwn(lookup: Lookup, asker: string, query: Query): Promise<Buffer> {
  const found = await withDeadline(lookup(asker, query.name), LIMITS.lookupMs)
  if (found === null) return encodeAnswer(query, 'noSuchName', { authoritative: true })
  // The name has an IPv4 address and no other record.
  const isAsked = query.question.type === 'A'
  return encodeAnswer(query, 'ok', {
    authoritative: true,
    answers: isAsked ? [{ type: 'A', name: query.question.name, ttl: TTL_SECONDS, data: found }] : [],
  })
}

/** Reverse names of private addresses are the operator's, and are not forwarded. */
function isPrivateReverse(name: string): boolean {
  if (name.endsWith('.ip6.arpa')) return true
  if (!name.endsWith('.in-addr.arpa')) return false
  const bytes = name.slice(0, -'.in-addr.arpa'.length).split('.').toReversed()
  return !isPublicAddress([...bytes, '0', '0', '0'].slice(0, 4).join('.'))
}

async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the lookup took too long')), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

// Transports
