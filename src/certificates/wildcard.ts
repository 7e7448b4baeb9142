// One certificate for the domain and all names directly below it, from an authority that validates DNS records. The
// operator's program sets the records. It runs as root, like everything the operator configures, with a name and a
// value from the authority and nothing from a caller. The account's key stays here, readable by root only.

import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AcmeSettings } from '../lib/service-settings.ts'
import { accountKeyIn, orderCertificate, type Proof } from './acme.ts'
import { hasEnded, isDue, readCertificate } from './certificate.ts'
import { type Clock, HOUR, MINUTE } from '../lib/clock.ts'
import { runOrThrow } from '../lib/process.ts'
import { writeDurably } from '../lib/write-durably.ts'

/** The program returns once the record is visible, or removed. */
const HOOK_MS = 5 * MINUTE
/** The delay doubles with each failure, because authorities limit failures per hour. */
const RETRY_MS = { first: 5 * MINUTE, longest: 12 * HOUR }

export type WildcardOptions = { settings: AcmeSettings; dataDir: string; domain: string; clock: Clock }

export type Wildcard = {
  /** Whether this authority issued the current certificate to us for this domain, and it has not expired. */
  isGood(shown: string): Promise<boolean>
  /**
   * Returns the new chain and key, or null while the current certificate is valid for long or a failure is recent.
   */
  renew(shown: string): Promise<string | null>
}

export function createWildcard({ settings, dataDir, domain, clock }: WildcardOptions): Wildcard {
  const directory = join(dataDir, 'acme')
  const issuedFile = join(directory, 'issued.json')
  const wanted = (fingerprint: string) => JSON.stringify({ from: settings.directory, domain, fingerprint })
  let failures = 0
  let waitUntilMs = -Infinity

  async function isOurs(shown: string): Promise<boolean> {
    const certificate = readCertificate(shown)
    const issued = await readFile(issuedFile, 'utf8').catch(() => '')
    return certificate !== null && issued === wanted(certificate.fingerprint256)
  }

  async function order(): Promise<string> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const authority = {
      directory: settings.directory,
      email: settings.email,
      ca: settings.caFile === null ? null : await readFile(settings.caFile, 'utf8'),
      accountKey: await accountKeyIn(directory),
    }
    const names = [domain, `*.${domain}`]
    const pem = await orderCertificate(authority, { names, proof: byRecords(settings.dnsHook ?? ''), clock })
    await writeDurably(issuedFile, wanted(readCertificate(pem)?.fingerprint256 ?? ''), 0o600)
    return pem
  }

  return {
    async isGood(shown) {
      const certificate = readCertificate(shown)
      return certificate !== null && (await isOurs(shown)) && !hasEnded(certificate, clock.now())
    },
    async renew(shown) {
      const certificate = readCertificate(shown)
      const isFresh = certificate !== null && (await isOurs(shown)) && !isDue(certificate, clock.now())
      if (isFresh || clock.monotonicMs() < waitUntilMs) return null
      try {
        const pem = await order()
        failures = 0
        return pem
      } catch (error) {
        waitUntilMs = clock.monotonicMs() + Math.min(RETRY_MS.first * 2 ** failures, RETRY_MS.longest)
        failures += 1
        throw error
      }
    },
  }
}

function byRecords(hook: string): Proof {
  const call = async (what: 'add' | 'remove', name: string, value: string) => {
    await runOrThrow(hook, [what, `_acme-challenge.${name}`, value], { timeoutMs: HOOK_MS })
  }
  return {
    type: 'dns-01',
    offer: async ({ name, keyAuthorization }) => await call('add', name, keyAuthorization),
    // A record that stays does no harm, so a failure to remove it must not discard the certificate.
    withdraw: async ({ name, keyAuthorization }) =>
      await call('remove', name, keyAuthorization).catch(() => {}),
  }
}
