// The certificate authority of a fleet: it signs for the machines of one Berth, and for nothing else.

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY } from '../lib/clock.ts'
import { FLEET_DOMAIN, fleetNameOf, type FleetMember, type FleetRole } from '../lib/fleet-identity.ts'
import {
  type Authority,
  authorityFile,
  issueCertificate,
  prepareAuthority,
  signRequest,
  type Subject,
} from './authority.ts'
import { isDue, readCertificate } from './certificate.ts'

const CERTIFICATE_DAYS = 365

/**
 * A server calls engines and answers gateways, and gateways hand visits over to each other. An engine only answers: with its
 * certificate it can call no other one.
 */
const usages = {
  server: 'serverAuth,clientAuth',
  engine: 'serverAuth',
  gateway: 'serverAuth,clientAuth',
} as const satisfies Record<FleetRole, Subject['usage']>

/**
 * Returns a new identity (lib/fleet-identity.ts) as one file in PEM: key, certificate, and that of the authority in
 * `<dataDir>/fleet/`, which is created if there is none.
 */
export async function issueIdentity(dataDir: string, member: FleetMember, now: Date): Promise<string> {
  const authority = fleetAuthority(dataDir)
  await prepareAuthority(authority, now)
  const subject = { names: [fleetNameOf(member)], usage: usages[member.role] }
  const own = await issueCertificate(authority, subject)
  return own + (await readFile(authorityFile(authority.directory), 'utf8'))
}

/** Returns a new identity of the member; null if the one that it has is good, and for long enough. */
export async function renewIdentity(
  dataDir: string,
  { member, current }: { member: FleetMember; current: string },
  now: Date,
): Promise<string | null> {
  const { directory } = fleetAuthority(dataDir)
  const own = readCertificate(current.slice(current.indexOf(BEGIN_CERTIFICATE)))
  const authority = await readFile(authorityFile(directory), 'utf8').catch(() => null)
  const isGood =
    own !== null &&
    authority !== null &&
    own.subjectAltName === `DNS:${fleetNameOf(member)}` &&
    own.verify(new X509Certificate(authority).publicKey) &&
    !isDue(own, now)
  return isGood ? null : await issueIdentity(dataDir, member, now)
}

const BEGIN_CERTIFICATE = '-----BEGIN CERTIFICATE-----'

/**
 * Returns the certificate of a member whose key stays on its own machine, and that of the authority behind it. Throws
 * for a signing request that is not in order.
 */
export async function signIdentity(
  dataDir: string,
  { member, request }: { member: FleetMember; request: Buffer },
): Promise<string> {
  const authority = fleetAuthority(dataDir)
  const subject = { names: [fleetNameOf(member)], usage: usages[member.role] }
  const certificate = await signRequest(authority, request, subject)
  return certificate + (await readFile(authorityFile(authority.directory), 'utf8'))
}

export const DOOR_NAME = `join.${FLEET_DOMAIN}`

/** Key and certificate, in PEM, of the door at which hosts join. Its name is of no member, so it serves nothing else. */
export async function issueDoor(dataDir: string, now: Date): Promise<string> {
  const authority = fleetAuthority(dataDir)
  await prepareAuthority(authority, now)
  return await issueCertificate(authority, { names: [DOOR_NAME], usage: 'serverAuth' })
}

export type AuthorityTimes = { endsAt: Date; replacedFrom: Date }

/** When the authority ends, and from when on another one takes its place; null if there is none. */
export async function readAuthorityTimes(dataDir: string): Promise<AuthorityTimes | null> {
  const certificate = readCertificate(await readFile(fleetAuthorityFile(dataDir), 'utf8').catch(() => ''))
  if (!certificate) return null
  const endsAt = certificate.validToDate
  return { endsAt, replacedFrom: new Date(endsAt.getTime() - CERTIFICATE_DAYS * DAY) }
}

/** Two years before the authority ends, and one before another takes its place. */
const ADVICE_MS = 730 * DAY

/** Null: it is too early for one. */
export function adviceOnAuthority({ endsAt, replacedFrom }: AuthorityTimes, now: Date): string | null {
  if (endsAt.getTime() - now.getTime() > ADVICE_MS) return null
  return `From ${replacedFrom.toISOString().slice(0, 10)} on another one takes its place, and each host then has to join again (npm run hosts -- join-token).`
}

/** The authority's certificate. */
export const fleetAuthorityFile = (dataDir: string) => authorityFile(fleetAuthority(dataDir).directory)

function fleetAuthority(dataDir: string): Authority {
  const directory = join(dataDir, 'fleet')
  return { directory, name: 'Berth fleet', domain: FLEET_DOMAIN, certificateDays: CERTIFICATE_DAYS }
}
