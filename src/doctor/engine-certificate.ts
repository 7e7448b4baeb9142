// The certificate with which the engine answers a server on another machine, and the authority of such certificates.

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Role } from '../lib/fleet-settings.ts'
import { adviceOnAuthority, readAuthorityTimes } from '../certificates/fleet-ca.ts'
import type { Config } from '../config.ts'
import { DAY } from '../lib/clock.ts'
import { memberOf, parseIdentity } from '../lib/fleet-identity.ts'
import { type Check, fail, type Finding, ok, warn } from './check.ts'
import { errorCodeOf } from '../lib/error-code.ts'

export const engineCertificateCheck: Check = {
  name: 'engine over TLS',
  run: async (config) => await engineCertificateFinding(config, new Date()),
}

/** On the server's machine. */
export const authorityCheck: Check = {
  name: 'authority of hosts',
  run: async (config) => await authorityFinding(config, new Date()),
}

export async function authorityFinding({ dataDir }: Pick<Config, 'dataDir'>, now: Date): Promise<Finding> {
  const times = await readAuthorityTimes(dataDir)
  if (!times) return ok('none here; a machine whose Berth has no other hosts needs none')
  const until = `certificates of hosts are signed by one until ${times.endsAt.toISOString().slice(0, 10)}`
  const advice = adviceOnAuthority(times, now)
  return advice === null ? ok(until) : warn(until, advice)
}

const SOON_MS = 60 * DAY
const REMAKE =
  'Make another one: "npm run hosts -- certificate" on the server\'s machine. Then put it in place of this one.'
const ADVICE = {
  host: 'Join: "npm run hosts -- join-token" on the server\'s machine says how.',
  all: REMAKE,
  server: REMAKE,
} as const satisfies Record<Role, string>

export async function engineCertificateFinding(
  { engineTls, role }: Pick<Config, 'engineTls' | 'role'>,
  now: Date,
): Promise<Finding> {
  const advice = ADVICE[role]
  if (!engineTls) return ok('off; the engine answers this machine only')
  const { host, port, certificateFile } = engineTls
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(parseIdentity(await readFile(certificateFile, 'utf8')).certificate)
  } catch (error) {
    const isMissing = errorCodeOf(error) === 'ENOENT'
    if (isMissing && role === 'host') return warn('this machine has not joined a Berth yet', advice)
    return fail(
      `${certificateFile} cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      advice,
    )
  }
  const leftMs = certificate.validToDate.getTime() - now.getTime()
  const until = certificate.validToDate.toISOString().slice(0, 10)
  if (leftMs <= 0) return fail(`the certificate has expired on ${until}`, advice)
  if (leftMs < SOON_MS) return warn(`the certificate expires on ${until}`, advice)
  return ok(`${memberOf(certificate)?.host} at ${host}:${port}, with a certificate until ${until}`)
}
