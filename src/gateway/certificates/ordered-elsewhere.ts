// Certificates of public names at a gateway that orders none itself: the first gateway of the host does (on-demand.ts), and
// keeps them in files of their common user. While it is away, those that are there are used.

import { hasEnded } from '../../certificates/certificate.ts'
import { type Clock, MINUTE } from '../../lib/clock.ts'
import { createSingleFlight } from '../../lib/concurrency/single-flight.ts'
import type { Routes } from '../route.ts'
import type { Peers } from '../workers/peers.ts'
import { followChallenges } from './acme-challenges.ts'
import { type CachedCertificate, readCertificateOf } from './cache.ts'
import type { DefaultCertificates } from './current.ts'
import { isPublicEndpoint, publicName } from './public-name.ts'

/** A renewed certificate is used after this time. */
const FRESH_MS = 10 * MINUTE
/** Above this number the oldest ones are read again. */
const MAX_KNOWN = 1000
/** Less than the handshake timeout. */
const PATIENCE_MS = 4000

/** Asks the first gateway. Resolves when the order has ended or is late, also if it could not be asked. */
export const askFirst = (peers: Pick<Peers, 'ask'>) => async (name: string) => {
  await peers.ask(0, 'order', { name }).catch(() => {})
}

export function followOnDemandTls({
  followed,
  order,
  directory,
  domain,
  routes,
  peers,
  clock,
}: {
  followed: DefaultCertificates
  /** Resolves when there is a certificate of the name, or none is to be had now. */
  order: (name: string) => Promise<void>
  directory: string
  domain: string
  routes: Routes
  peers: Pick<Peers, 'follow'>
  clock: Clock
}): DefaultCertificates {
  const known = new Map<string, CachedCertificate & { readMs: number }>()
  const looks = createSingleFlight<CachedCertificate | null>(clock)

  function isUsable(found: CachedCertificate | null | undefined): found is CachedCertificate {
    return found !== null && found !== undefined && !hasEnded(found.certificate, clock.now())
  }

  async function read(name: string): Promise<CachedCertificate | null> {
    const found = await readCertificateOf(name, { directory, domain })
    known.delete(name)
    if (!isUsable(found)) return null
    if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value ?? '')
    known.set(name, { ...found, readMs: clock.monotonicMs() })
    return found
  }

  async function look(name: string): Promise<CachedCertificate | null> {
    if (!(await isPublicEndpoint(routes, name))) return null
    const found = await read(name)
    if (found) return found
    await order(name)
    return await read(name)
  }

  return {
    async find(serverName) {
      const name = publicName(serverName, domain)
      if (name === null) return await followed.find(serverName)
      const found = known.get(name)
      if (isUsable(found) && clock.monotonicMs() - found.readMs < FRESH_MS) return found.context
      const read = await looks.run(name, PATIENCE_MS, () => look(name)).catch(() => null)
      return (read ?? (isUsable(found) ? found : null))?.context ?? (await followed.find(serverName))
    },
    follow: (use) => followed.follow(use),
    challenges: followChallenges(peers),
    stop: () => followed.stop(),
  }
}
