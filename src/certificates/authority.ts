// A certificate authority of this installation's own, in a directory of its own. It is created once, its key readable
// by root only, and name-constrained to one domain, so trusting it affects no other name. openssl makes the keys and
// certificates.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY } from '../lib/clock.ts'
import { runOrThrow } from '../lib/process.ts'
import { readIfThere } from '../lib/read-if-there.ts'
import { writeDurably } from '../lib/write-durably.ts'

export type Authority = {
  directory: string
  /** The common name, at most 64 characters. */
  name: string
  /** It signs for this domain and names below it. Neither it nor `name` contains a line break. */
  domain: string
  /** How long the certificates are valid that it signs. */
  certificateDays: number
}

export type Subject = { names: string[]; usage: 'serverAuth' | 'clientAuth' | 'serverAuth,clientAuth' }

const AUTHORITY_DAYS = 3650
const TIMEOUT_MS = 20_000

export const authorityFile = (directory: string) => join(directory, 'ca.crt')

/** Creates the authority, unless there is one of this name that outlives the certificates it signs. */
export async function prepareAuthority(authority: Authority, now: Date): Promise<void> {
  const paths = pathsOf(authority)
  await mkdir(authority.directory, { recursive: true })
  await chmod(authority.directory, 0o755)
  // Left as it is where it is right: another process may be signing.
  if ((await readIfThere(paths.config)) !== configOf(authority))
    await writeDurably(paths.config, configOf(authority))
  if (await isGood(authority, now)) return
  const files = ['-keyout', paths.key, '-out', paths.cert]
  await openssl(paths.config, ['-extensions', 'authority', '-days', String(AUTHORITY_DAYS), ...files])
  await chmod(paths.cert, 0o644)
}

/** Returns a new certificate and its key, in PEM. */
export async function issueCertificate(authority: Authority, { names, usage }: Subject): Promise<string> {
  const paths = pathsOf(authority)
  const subject = names.map((name) => `DNS:${name}`).join(',')
  const extensions = ['-extensions', 'certificate', '-addext', `extendedKeyUsage=${usage}`]
  const signing = ['-CA', paths.cert, '-CAkey', paths.key, '-days', String(authority.certificateDays)]
  // The key also goes to standard output, so that it is written to disk only where it is used.
  const files = ['-addext', `subjectAltName=${subject}`, '-keyout', '-', '-out', '-']
  return await openssl(paths.config, [...extensions, ...signing, ...files])
}

/**
 * Returns a certificate in PEM for the key of a signing request (in DER). openssl checks that the request is signed with
 * that key. Names, usage and subject are ours: what the request says of them is ignored.
 */
export async function signRequest(
  authority: Authority,
  request: Buffer,
  { names, usage }: Subject,
): Promise<string> {
  const paths = pathsOf(authority)
  const subject = names.map((name) => `DNS:${name}`).join(',')
  const asked = ['-x509', '-verify', '-inform', 'DER', '-in', '-', '-config', paths.config]
  const extensions = [
    '-subj',
    '/O=Berth',
    '-extensions',
    'certificate',
    '-addext',
    `extendedKeyUsage=${usage}`,
  ]
  const signing = ['-CA', paths.cert, '-CAkey', paths.key, '-days', String(authority.certificateDays)]
  const all = ['req', ...asked, ...extensions, '-addext', `subjectAltName=${subject}`, ...signing]
  return await runOrThrow('openssl', all, { stdin: request, timeoutMs: TIMEOUT_MS })
}

function pathsOf({ directory }: Authority) {
  return {
    cert: authorityFile(directory),
    key: join(directory, 'ca.key'),
    config: join(directory, 'openssl.cnf'),
  }
}

/** Another domain needs another authority. An authority whose creation was interrupted is created again. */
async function isGood(authority: Authority, now: Date): Promise<boolean> {
  const paths = pathsOf(authority)
  try {
    const certificate = new X509Certificate(await readFile(paths.cert))
    return (
      certificate.subject.split('\n').includes(`CN=${authority.name}`) &&
      certificate.checkPrivateKey(createPrivateKey(await readFile(paths.key))) &&
      certificate.validToDate.getTime() - now.getTime() > authority.certificateDays * DAY
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

const configOf = ({ name, domain }: Authority) => `
[req]
prompt = no
distinguished_name = name
string_mask = utf8only
[name]
O = Berth
CN = ${name}
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
nameConstraints = critical, permitted;DNS:${domain}, excluded;IP:0.0.0.0/0.0.0.0, excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0
[certificate]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`
