// The certificate authority of this installation's domain, where it has no public certificate.

import { join } from 'node:path'
import { type Authority, authorityFile, issueCertificate, prepareAuthority } from './authority.ts'

/** Browsers refuse certificates that are valid for much longer than a year. */
const CERTIFICATE_DAYS = 90

/** `<dataDir>/ca/`; visitors install `ca.crt`. */
export const localCaFile = (dataDir: string) => authorityFile(directoryOf(dataDir))

/** Creates the authority, unless one exists for this domain that outlives the certificates it signs. */
export async function prepareLocalCa(dataDir: string, domain: string, now: Date): Promise<void> {
  await prepareAuthority(localAuthority(dataDir, domain), now)
}

/** Returns a new certificate for the domain and every name directly below it, and its key, in PEM. */
export async function issueLocally(dataDir: string, domain: string): Promise<string> {
  const names = [domain, `*.${domain}`]
  return await issueCertificate(localAuthority(dataDir, domain), { names, usage: 'serverAuth' })
}

const directoryOf = (dataDir: string) => join(dataDir, 'ca')

/** config.ts has validated the domain: it contains no line break. */
function localAuthority(dataDir: string, domain: string): Authority {
  // A common name has at most 64 characters.
  const name = `Berth for ${domain}`.slice(0, 64)
  return { directory: directoryOf(dataDir), name, domain, certificateDays: CERTIFICATE_DAYS }
}
