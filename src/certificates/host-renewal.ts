// A host renews its certificates (decisions/joining.md): its engine asks the server that calls it, long before they end.
// Keys are new each time, and stay in memory until their certificates are there, so at any moment both files hold a whole
// pair.

import { type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Clock, HOUR, MINUTE } from '../lib/clock.ts'
import { createSemaphore } from '../lib/concurrency/semaphore.ts'
import { type FleetIdentity, fleetNameOf, memberOf, parseIdentity } from '../lib/fleet-identity.ts'
import type { Log } from '../lib/log.ts'
import { writeDurably } from '../lib/write-durably.ts'
import { isDue, isDueInTurn } from './certificate.ts'
import { type HostRole, hostRoles, writeRenewalRequest } from './renewal-request.ts'
import { makeKey, signingRequest, toPem } from './signed.ts'

type Options = {
  /** With the present keys and certificates. */
  files: Record<HostRole, string>
  instance: string
  clock: Clock
  log: Log
}

type Outcome = Record<HostRole, string> | { refused: string }

export type HostRenewal = {
  /** Takes what came of the last request, and returns when the certificates end, and a request if they are due. */
  renew: (outcome: Outcome | null) => Promise<{ endsAt: Date; request: string | null }>
  /** Tells the operator of this machine what only they can do. */
  tell: () => Promise<void>
}

const AGAIN_FIRST_MS = MINUTE
const AGAIN_LAST_MS = HOUR
/** By then the server has been asked for a month. */
const LATE_AFTER = 3 / 4

const JOIN_AGAIN =
  'run "npm run hosts -- join-token" on the server\'s machine, and start this one with the token as BERTH_JOIN'

export function openHostRenewal({ files, instance, clock, log }: Options): HostRenewal {
  const oneAtATime = createSemaphore(1)
  let pending: Record<HostRole, KeyObject> | null = null
  let attempts = 0
  let nextMs = 0

  async function readOwn(): Promise<{ engine: FleetIdentity; ends: Date; certificates: X509Certificate[] }> {
    const [engine, gateway] = await Promise.all(
      hostRoles.map(async (role) => parseIdentity(await readFile(files[role], 'utf8'))),
    )
    if (!engine || !gateway) throw new Error('a host has two identities')
    const certificates = [engine, gateway].map(({ certificate }) => new X509Certificate(certificate))
    const authority = new X509Certificate(engine.authority)
    const endsMs = [...certificates, authority].map(({ validToDate }) => validToDate.getTime())
    return { engine, ends: new Date(Math.min(...endsMs)), certificates }
  }

  async function ask(engine: FleetIdentity, host: string): Promise<string> {
    nextMs = clock.monotonicMs() + Math.min(AGAIN_FIRST_MS * 2 ** attempts, AGAIN_LAST_MS)
    attempts += 1
    pending = { engine: await makeKey(), gateway: await makeKey() }
    const keys = pending
    const requestOf = (role: HostRole) => signingRequest([fleetNameOf({ role, host })], keys[role])
    const requests = { engine: requestOf('engine'), gateway: requestOf('gateway') }
    return writeRenewalRequest(engine, { instance, at: clock.now(), requests })
  }

  async function take(outcome: Outcome, present: FleetIdentity, host: string): Promise<void> {
    const keys = pending
    pending = null
    if ('refused' in outcome) return log.warn({ why: outcome.refused }, 'certificates were not renewed')
    if (!keys) return log.warn('certificates came that were not asked for')
    const renewed = {
      engine: identityOf('engine', { host, keys, outcome, present }),
      gateway: identityOf('gateway', { host, keys, outcome, present }),
    }
    // The one of the engine last: with it the host asks again if it dies in between.
    await writeDurably(files.gateway, renewed.gateway, 0o600)
    await writeDurably(files.engine, renewed.engine, 0o600)
    attempts = 0
    nextMs = 0
    log.info({ host }, 'certificates renewed')
  }

  const renew: HostRenewal['renew'] = async (outcome) =>
    await oneAtATime(async () => {
      const before = await readOwn()
      const host = hostOf(before.engine)
      if (outcome) await take(outcome, before.engine, host)
      const { engine, ends, certificates } = outcome ? await readOwn() : before
      const now = clock.now()
      const isWanted = certificates.some((certificate) => isDueInTurn(certificate, now))
      const isTime = outcome === null && ends > now && clock.monotonicMs() >= nextMs
      return { endsAt: ends, request: isWanted && isTime ? await ask(engine, host) : null }
    })

  const tell = async () => {
    const { ends, certificates } = await readOwn()
    const now = clock.now()
    const facts = { alarm: 'certificates', ends }
    if (ends <= now)
      log.error(facts, `the certificates of this host have ended, so no server can call it: ${JOIN_AGAIN}`)
    else if (certificates.some((certificate) => isDue(certificate, now, LATE_AFTER)))
      log.warn(
        facts,
        `the server has not renewed the certificates of this host: look at "npm run hosts -- list" there, or ${JOIN_AGAIN}`,
      )
  }

  return { renew, tell }
}

/** Whatever came, only what the present authority signed for the key of this role is kept. */
function identityOf(
  role: HostRole,
  {
    host,
    keys,
    outcome,
    present,
  }: {
    host: string
    keys: Record<HostRole, KeyObject>
    outcome: Record<HostRole, string>
    present: FleetIdentity
  },
): string {
  const pem = toPem(keys[role]) + outcome[role]
  const { certificate, authority } = parseIdentity(pem)
  const member = memberOf(new X509Certificate(certificate))
  if (member?.role !== role || member.host !== host || authority.trim() !== present.authority.trim())
    throw new Error(
      `what came is no certificate of the ${role} of ${host} by the authority that it has joined`,
    )
  return pem
}

function hostOf({ certificate }: FleetIdentity): string {
  const member = memberOf(new X509Certificate(certificate))
  if (!member) throw new Error('the certificate is not of a host')
  return member.host
}
