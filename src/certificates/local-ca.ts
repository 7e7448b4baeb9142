// The certificate authority of this installation, for domains that have no public certificate. It is created once,
// readable by root only, and name-constrained to the domain, so trusting it affects no other site. openssl makes the
// keys and certificates.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY } from '../lib/clock.ts'
import { runOrThrow } from '../lib/process.ts'
import { writeDurably } from '../lib/write-durably.ts'

/** `<dataDir>/ca/`; visitors install `ca.crt`. */
export const localCaFile = (dataDir: string) => join(dataDir, 'ca', 'ca.crt')

const AUTHORITY_DAYS = 3650
/** Browsers refuse certificates that are valid for much longer than a year. */
const CERTIFICATE_DAYS = 90
const TIMEOUT_MS = 20_000

/** Creates the authority, unless one exists for this domain that outlives the certificates it signs. */
export async function prepareLocalCa(dataDir: string, domain: string, now: Date): Promise<void> {
  const paths = pathsOf(dataDir)
  await mkdir(paths.directory, { recursive: true })
  await chmod(paths.directory, 0o755)
  await writeDurably(paths.config, configOf(domain))
  if (await isGood(paths, domain, now)) return
  const files = ['-keyout', paths.key, '-out', paths.cert]
  await openssl(paths.config, ['-extensions', 'authority', '-days', String(AUTHORITY_DAYS), ...files])
  await chmod(paths.cert, 0o644)
}

/** Returns a new certificate for the domain and every name directly below it, and its key, in PEM. */
export async function issueLocally(dataDir: string): Promise<string> {
  const paths = pathsOf(dataDir)
  // The key also goes to standard output, so that it is written to disk only where it is used.
  const files = ['-CA', paths.cert, '-CAkey', paths.key, '-keyout', '-', '-out', '-']
  const args = ['-extensions', 'service', '-days', String(CERTIFICATE_DAYS), ...files]
  return await openssl(paths.config, args)
}

function pathsOf(dataDir: string) {
  const directory = join(dataDir, 'ca')
  return {
    directory,
    cert: localCaFile(dataDir),
    key: join(directory, 'ca.key'),
    config: join(directory, 'openssl.cnf'),
  }
}

/** Another domain needs another authority. An authority whose creation was interrupted is created again. */
async function isGood(paths: { cert: string; key: string }, domain: string, now: Date): Promise<boolean> {
  try {
    const certificate = new X509Certificate(await readFile(paths.cert))
    return (
      certificate.subject.split('\n').includes(`CN=${nameOf(domain)}`) &&
      certificate.checkPrivateKey(createPrivateKey(await readFile(paths.key))) &&
      certificate.validToDate.getTime() - now.getTime() > CERTIFICATE_DAYS * DAY
    )
  } catch {
    return false
  }
}

async function openssl(config: string, args: string[]): Promise<string> {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const all = ['req', '-x509', '-config', config, ...key, ...args]
  return await runOrThrow('openssl', all, { timeoutMs: TIMEOUT_MS })
}

/** A common name has at most 64 characters. */
const nameOf = (domain: string) => `Berth for ${domain}`.slice(0, 64)

/** config.ts has validated the domain: it contains no line break. */
const configOf = (domain: string) => `
[req]
prompt = no
distinguished_name = name
string_mask = utf8only
[name]
O = Berth
CN = ${nameOf(domain)}
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
nameConstraints = critical, permitted;DNS:${domain}, excluded;IP:0.0.0.0/0.0.0.0, excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0
[service]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:${domain}, DNS:*.${domain}
`
