// The certificate the gateway shows, wherever it comes from: the operator's own files, or the authority of this
// installation. It is put where the gateway finds it, chain and key in one file, so that it is replaced at once.

import { X509Certificate } from 'node:crypto'
import { chown, readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { Config } from '../config.ts'
import { getAccount } from '../lib/accounts.ts'
import { type Clock, DAY, MINUTE, SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { runLoop } from '../lib/loop.ts'
import { writeDurably } from './instance.ts'
import { issueLocally, localCaFile, prepareLocalCa } from './local-ca.ts'

/** Long before it ends: a host may be away for weeks. */
const RENEW_BEFORE_MS = 30 * DAY
const LOOK_EVERY_MS = 10 * SECOND

/** What visitors need to trust it: null where they need nothing of ours. */
export function caFileOf({ dataDir, tlsFiles }: Config): string | null {
  return tlsFiles === null ? localCaFile(dataDir) : null
}

/**
 * Puts a certificate that is good for the domain where the gateway looks. Throws a sentence for the operator when
 * their files are no pair.
 */
export async function prepareCertificate(config: Config, file: string): Promise<void> {
  const wanted = config.tlsFiles ? await readPair(config.tlsFiles) : await renewLocally(config, file)
  if (wanted === null || wanted === (await readText(file))) return
  await writeDurably(file, wanted, 0o400)
  const { uid, gid } = await getAccount('berth-gateway')
  await chown(file, uid, gid)
}

/** Looks for newer files of the operator's, and renews what is about to end. Until the signal aborts. */
export async function keepCertificate(
  config: Config,
  file: string,
  around: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<void> {
  const run = async () => await prepareCertificate(config, file)
  await runLoop({ name: 'certificate', everyMs: LOOK_EVERY_MS, longestMs: MINUTE, run }, around)
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

/** Null: what is there is good for a while. */
async function renewLocally({ dataDir, domain }: Config, file: string): Promise<string | null> {
  await prepareLocalCa(dataDir, domain)
  const authority = new X509Certificate(await readFile(localCaFile(dataDir)))
  const current = readCertificate((await readText(file)) ?? '')
  const isGood =
    current !== null &&
    current.checkIssued(authority) &&
    current.verify(authority.publicKey) &&
    current.validToDate.getTime() - Date.now() > RENEW_BEFORE_MS
  return isGood ? null : await issueLocally(dataDir)
}

function readCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem)
  } catch {
    return null
  }
}

async function readText(file: string): Promise<string | null> {
  return await readFile(file, 'utf8').catch(() => null)
}
