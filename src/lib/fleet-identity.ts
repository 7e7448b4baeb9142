// Identities of the processes of one Berth across machines. A process that calls another one over the network has a
// certificate of the fleet's authority with one name, `<host>.<role>.berth.internal`: the role says what it may do,
// the host on which machine it runs.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { MINUTE } from './clock.ts'

export const fleetRoles = ['server', 'engine', 'gateway'] as const
export type FleetRole = (typeof fleetRoles)[number]

export type FleetMember = { role: FleetRole; host: string }

/** What a process shows and whom it believes, in PEM. */
export type FleetIdentity = { key: string; certificate: string; authority: string }

export const FLEET_DOMAIN = 'berth.internal'

/** A certificate is signed just before its host is entered, and by another clock than the database's. */
export const SIGNED_BEFORE_MS = MINUTE

const hostPattern = '[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?'
const hostName = new RegExp(`^${hostPattern}$`)
const memberName = new RegExp(`^DNS:(${hostPattern})\\.(${fleetRoles.join('|')})\\.berth\\.internal$`)

/** Names of hosts are labels of DNS, up to 32 characters. */
export function isHostName(text: string): boolean {
  return hostName.test(text)
}

export function fleetNameOf({ role, host }: FleetMember): string {
  return `${host}.${role}.${FLEET_DOMAIN}`
}

/** Returns null for a certificate without such a name. */
export function memberOf(certificate: X509Certificate): FleetMember | null {
  const [, host, role] = memberName.exec(certificate.subjectAltName ?? '') ?? []
  const known = fleetRoles.find((each) => each === role)
  return host !== undefined && known ? { host, role: known } : null
}

/** Reads a key, its certificate and that of the authority from one file. Throws a sentence if they do not fit. */
export function parseIdentity(pem: string): FleetIdentity {
  const blocksOf = (label: string) =>
    pem.match(new RegExp(`-----BEGIN ${label}-----[^-]+-----END ${label}-----\\n?`, 'g')) ?? []
  const [key = '', ...otherKeys] = blocksOf('PRIVATE KEY')
  const [certificate = '', authority = '', ...others] = blocksOf('CERTIFICATE')
  const identity = { key, certificate, authority }
  if (otherKeys.length > 0 || others.length > 0 || !belongTogether(identity))
    throw new Error('It must hold a key, its certificate and then that of the authority, in PEM.')
  return identity
}

function belongTogether({ key, certificate, authority }: FleetIdentity): boolean {
  try {
    const [own, issuer] = [new X509Certificate(certificate), new X509Certificate(authority)]
    return (
      own.checkPrivateKey(createPrivateKey(key)) && own.verify(issuer.publicKey) && memberOf(own) !== null
    )
  } catch {
    return false
  }
}
