// On-demand TLS: certificates of public names, each ordered when its name is first requested, and renewed before it
// expires. Issued certificates are published in logs, so none is ordered for the name of a private endpoint, with or
// without its secret, nor for an unknown name. Without such a certificate, visitors get the default certificate.

import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SecureContext } from 'node:tls'
import type { Config } from '../../config.ts'
import { accountKeyIn, type Authority, orderCertificate } from '../../certificates/acme.ts'
import { hasEnded, isDue } from '../../certificates/certificate.ts'
import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../lib/clock.ts'
import { completesWithin } from '../../lib/concurrency/completes-within.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import { slidingWindow } from '../../lib/concurrency/sliding-window.ts'
import type { DefaultCertificates } from './current.ts'
import { createChallenges } from './acme-challenges.ts'
import { openCertificateCache } from './cache.ts'
import type { Routes } from '../route.ts'
import type { Peers } from '../workers/peers.ts'
import { askFirst, followOnDemandTls } from './ordered-elsewhere.ts'
import { isPublicEndpoint, publicName } from './public-name.ts'

/** Teams can create public names as fast as units: they must not use up the disk or the authority's rate limits. */
export const onDemandTlsLimits = { names: 1000, ordersAtOnce: 4, ordersAnHour: 60 }
/** How long the first visitor of a name waits for its certificate: less than the handshake timeout. */
const PATIENCE_MS = 3 * SECOND
const LOOK_EVERY_MS = 10 * MINUTE
/** The delay doubles with each failure, because authorities limit failures per hour. */
const RETRY_MS = { first: 5 * MINUTE, longest: 12 * HOUR }

export type OnDemandTlsOptions = {
  /** The default certificates. They are stopped together with these. */
  followed: DefaultCertificates
  authority: Authority
  /** A directory of the gateway. */
  directory: string
  /** In lower case. */
  domain: string
  routes: Routes
  clock: Clock
  log: Log
  /** Other gateways on the same port: they answer challenges too, and ask this one for certificates. */
  peers?: Peers
  limits?: typeof onDemandTlsLimits
}

/**
 * Returns the default certificates, with those of public names if the settings enable them. Of several gateways the first
 * one orders them.
 */
export async function withOnDemandTls(
  { acme, domain }: Pick<Config, 'acme' | 'domain'>,
  {
    stateDir,
    ...options
  }: Pick<OnDemandTlsOptions, 'followed' | 'routes' | 'clock' | 'log' | 'peers'> & { stateDir: string },
): Promise<DefaultCertificates> {
  if (acme === null || acme.dnsHook !== null) return options.followed
  const state = join(stateDir, 'acme')
  // Certificates of another authority, for example a test one, are not used.
  const names = join(state, createHash('sha256').update(acme.directory).digest('hex').slice(0, 16))
  const { peers } = options
  if (peers && peers.number > 0)
    return followOnDemandTls({ ...options, peers, order: askFirst(peers), directory: names, domain })
  await mkdir(names, { recursive: true, mode: 0o700 })
  const authority = {
    directory: acme.directory,
    email: acme.email,
    ca: acme.caFile === null ? null : await readFile(acme.caFile, 'utf8'),
    accountKey: await accountKeyIn(state),
  }
  return await openOnDemandTls({ ...options, authority, directory: names, domain })
}

export async function openOnDemandTls(options: OnDemandTlsOptions): Promise<DefaultCertificates> {
  const { followed, authority, directory, domain, routes, clock, log } = options
  const limits = options.limits ?? onDemandTlsLimits
  const kept = await openCertificateCache(directory, { domain, most: limits.names })
  const challenges = createChallenges(options.peers)
  const failures = new Map<string, { times: number; untilMs: number }>()
  const underWay = new Map<string, Promise<void>>()
  const orders = slidingWindow(limits.ordersAnHour, HOUR)

  /** Returns the valid certificate of a name, or null. */
  function current(name: string): SecureContext | null {
    const found = kept.find(name)
    return found && !hasEnded(found.certificate, clock.now()) ? found.context : null
  }

  const isPublic = (name: string) => isPublicEndpoint(routes, name)

  async function order(name: string): Promise<void> {
    try {
      const names = [`${name}.${domain}`]
      await kept.put(name, await orderCertificate(authority, { names, proof: challenges.proof, clock }))
      failures.delete(name)
      log.info({ name }, 'certificate issued')
    } catch (error) {
      const times = (failures.get(name)?.times ?? 0) + 1
      const pauseMs = Math.min(RETRY_MS.first * 2 ** (times - 1), RETRY_MS.longest)
      failures.set(name, { times, untilMs: clock.monotonicMs() + pauseMs })
      log.warn({ err: error, name, pauseMs }, 'certificate could not be issued')
    } finally {
      underWay.delete(name)
    }
  }

  /** Starts one order at a time for each name; returns null if none may start now. The promise never rejects. */
  function begin(name: string): Promise<void> | null {
    const begun = underWay.get(name)
    if (begun) return begun
    const nowMs = clock.monotonicMs()
    const known = new Set([...kept.names(), ...failures.keys(), ...underWay.keys()])
    const mayBegin =
      nowMs >= (failures.get(name)?.untilMs ?? -Infinity) &&
      underWay.size < limits.ordersAtOnce &&
      (known.has(name) || known.size < limits.names) &&
      orders.waitMs('', nowMs) === 0
    if (!mayBegin) return null
    orders.record('', nowMs)
    const ordered = order(name)
    underWay.set(name, ordered)
    return ordered
  }

  /** Renews certificates before they expire, and deletes those of retired names. */
  async function look(): Promise<void> {
    for (const [name, { untilMs }] of failures) if (clock.monotonicMs() > untilMs + DAY) failures.delete(name)
    const names = kept.names()
    const arePublic = await Promise.all(names.map(isPublic))
    for (const [index, name] of names.entries()) {
      const certificate = kept.find(name)?.certificate
      if (arePublic[index] === false) await kept.forget(name)
      else if (arePublic[index] && certificate && isDue(certificate, clock.now())) {
        await Promise.race([begin(name), stopped])
      }
    }
  }

  const stopping = new AbortController()
  const stopped = new Promise<void>((resolve) => {
    stopping.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  options.peers?.answer('order', async ({ name }) => {
    const ordered = !current(name) && (await isPublic(name)) ? begin(name) : null
    if (ordered) await completesWithin(clock, PATIENCE_MS, ordered)
    return {}
  })
  const loop = { name: 'names on demand', everyMs: LOOK_EVERY_MS, timeoutMs: 2 * HOUR, run: look }
  const looking = runLoop(loop, { clock, log, signal: stopping.signal })
  return {
    async find(serverName) {
      const name = publicName(serverName, domain)
      if (name === null) return await followed.find(serverName)
      const known = current(name)
      if (known) return known
      const ordered = (await isPublic(name)) ? begin(name) : null
      if (ordered) await completesWithin(clock, PATIENCE_MS, ordered)
      return current(name) ?? (await followed.find(serverName))
    },
    follow: (use) => followed.follow(use),
    challenges,
    async stop() {
      stopping.abort()
      await looking
      await followed.stop()
    },
  }
}
