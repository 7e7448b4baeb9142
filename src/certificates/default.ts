// The certificate that the gateway serves: the operator's own files, one from an ACME authority, or one of this
// installation's local authority if there is neither. Chain and key are written to one file, so the gateway replaces
// both at once.

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config.ts'
import { getAccount } from '../lib/system-users.ts'
import { isDue, readCertificate } from './certificate.ts'
import { type Clock, MINUTE, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { runLoop } from '../lib/loop.ts'
import { writeDurably } from '../lib/write-durably.ts'
import { issueLocally, localCaFile, prepareLocalCa } from './local-ca.ts'
import { createWildcard, type Wildcard } from './wildcard.ts'

const LOOK_EVERY_MS = 10 * SECOND
/** An order takes as long as its DNS records need to become visible. */
const LONGEST_LOOK_MS = 30 * MINUTE

type CertificateConfig = Pick<Config, 'dataDir' | 'domain' | 'tlsFiles' | 'acme'>

/** Returns the file of the root certificate that visitors must trust, or null if they need none of ours. */
export function caFileOf({ dataDir, tlsFiles, acme }: CertificateConfig): string | null {
  // With on-demand TLS, private names still use the local authority.
  return tlsFiles === null && !acme?.dnsHook ? localCaFile(dataDir) : null
}

export type KeptCertificate = {
  /** Checks for newer files of the operator and renews certificates before they expire, until the signal aborts. */
  keep(around: { log: Log; signal: AbortSignal }): Promise<void>
}

/**
 * Puts a certificate for the domain where the gateway reads it. Throws a sentence for the operator if their files are
 * not a matching pair.
 */
export async function prepareCertificate(
  config: CertificateConfig,
  file: string,
  clock: Clock,
): Promise<KeptCertificate> {
  const { acme: settings, dataDir, domain } = config
  const wildcard = settings?.dnsHook ? createWildcard({ settings, dataDir, domain, clock }) : null
  const prepare = async () =>
    await show(file, await choose(config, wildcard, (await readText(file)) ?? '', clock))
  await prepare()
  const run = async () => {
    await prepare()
    if (wildcard) await show(file, await wildcard.renew((await readText(file)) ?? ''))
  }
  const loop = { name: 'certificate', everyMs: LOOK_EVERY_MS, timeoutMs: LONGEST_LOOK_MS, run }
  return { keep: async (around) => await runLoop(loop, { clock, ...around }) }
}

/** Returns the certificate to serve from now on, if one is available at once; null keeps the current one. */
async function choose(
  config: CertificateConfig,
  wildcard: Wildcard | null,
  shown: string,
  clock: Clock,
): Promise<string | null> {
  if (config.tlsFiles) return await readPair(config.tlsFiles)
  if (await wildcard?.isGood(shown)) return null
  return await renewLocally(config, shown, clock)
}

async function show(file: string, wanted: string | null): Promise<void> {
  if (wanted === null || wanted === (await readText(file))) return
  await writeDurably(file, wanted, 0o400, await getAccount('berth-gateway'))
}

async function readPair({ cert, key }: { cert: string; key: string }): Promise<string> {
  try {
    const texts = await Promise.all([readFile(cert, 'utf8'), readFile(key, 'utf8')])
    createSecureContext({ cert: texts[0], key: texts[1] })
    return texts.map((text) => `${text.trim()}\n`).join('')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(
      `BERTH_TLS_CERT and BERTH_TLS_KEY must name a certificate and its key, in PEM and without a password: ${why}.`,
      { cause },
    )
  }
}

/** Returns null if the current certificate is still valid for long enough. */
async function renewLocally(
  { dataDir, domain }: CertificateConfig,
  shown: string,
  clock: Clock,
): Promise<string | null> {
  await prepareLocalCa(dataDir, domain, clock.now())
  const authority = new X509Certificate(await readFile(localCaFile(dataDir)))
  const current = readCertificate(shown)
  const isGood =
    current !== null &&
    current.checkIssued(authority) &&
    current.verify(authority.publicKey) &&
    !isDue(current, clock.now())
  return isGood ? null : await issueLocally(dataDir, domain)
}

async function readText(file: string): Promise<string | null> {
  return await readFile(file, 'utf8').catch(() => null)
}
