// Certificates of single names with their keys, one file each in a directory of the gateway. Names are labels of
// endpoints, so each is a valid file name.

import type { X509Certificate } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { readCertificate } from '../../certificates/certificate.ts'
import { readIfThere } from '../../lib/read-if-there.ts'
import { writeDurably } from '../../lib/write-durably.ts'

export type CachedCertificate = { certificate: X509Certificate; context: SecureContext }

export type CertificateCache = {
  find(name: string): CachedCertificate | null
  names(): string[]
  /** Chain and key, in PEM. Throws if they do not match. */
  put(name: string, pem: string): Promise<void>
  forget(name: string): Promise<void>
}

const ENDING = '.pem'

/** Deletes files that are not a valid certificate for their name below the domain, and files above the limit. */
export async function openCertificateCache(
  directory: string,
  { domain, most }: { domain: string; most: number },
): Promise<CertificateCache> {
  const kept = new Map<string, CachedCertificate>()
  const fileOf = (name: string) => join(directory, `${name}${ENDING}`)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  for (const file of await readdir(directory)) {
    const name = file.slice(0, -ENDING.length)
    const found = file.endsWith(ENDING) ? read(await readFile(join(directory, file), 'utf8')) : null
    if (found?.certificate.checkHost(`${name}.${domain}`) && kept.size < most) kept.set(name, found)
    else await rm(join(directory, file))
  }
  return {
    find: (name) => kept.get(name) ?? null,
    names: () => [...kept.keys()],
    async put(name, pem) {
      const made = read(pem)
      if (made === null) throw new Error('the issued certificate does not match its key')
      await writeDurably(fileOf(name), pem, 0o400)
      kept.set(name, made)
    },
    async forget(name) {
      kept.delete(name)
      await rm(fileOf(name), { force: true })
    },
  }
}

/** Returns the certificate of one name in such a directory; null if there is none. */
export async function readCertificateOf(
  name: string,
  { directory, domain }: { directory: string; domain: string },
): Promise<CachedCertificate | null> {
  const pem = await readIfThere(join(directory, `${name}${ENDING}`))
  const found = pem === null ? null : read(pem)
  return found?.certificate.checkHost(`${name}.${domain}`) ? found : null
}

function read(pem: string): CachedCertificate | null {
  const certificate = readCertificate(pem)
  if (certificate === null) return null
  try {
    return { certificate, context: createSecureContext({ cert: pem, key: pem }) }
  } catch {
    return null
  }
}
