// Orders a certificate from an ACME authority (RFC 8555). Every step has a timeout; the caller decides when to retry
// a failed order.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, MINUTE } from '../lib/clock.ts'
import { completesWithin } from '../lib/concurrency/completes-within.ts'
import { writeDurably } from '../lib/write-durably.ts'
import { type AcmeOrder, placeOrder } from './acme-client.ts'
import { makeKey, proofCertificate, signingRequest, toPem } from './signed.ts'

export type Authority = {
  /** The URL of the authority's directory. */
  directory: string
  /** The operator's mail address, for the authority. */
  email: string | null
  /** The root certificate to trust instead of Node's, in PEM; null for Node's. */
  ca: string | null
  accountKey: string
}

/** The value that proves control of a name: for DNS the content of the record. */
export type Challenge = { name: string; keyAuthorization: string }

/** Publishes such a value. What was published is withdrawn, whether the order succeeds or fails. */
export type Proof = {
  type: 'dns-01' | 'tls-alpn-01'
  offer(challenge: Challenge): Promise<void>
  withdraw(challenge: Challenge): Promise<void>
}

/** DNS records take time to become visible everywhere. */
const ORDER_MS = 15 * MINUTE
const MAX_REASON_LENGTH = 500

/** Returns chain and key, in PEM. Throws an Error that says why there is no certificate. */
export async function orderCertificate(
  authority: Authority,
  { names, proof, clock }: { names: string[]; proof: Proof; clock: Clock },
): Promise<string> {
  const ordered = order(authority, { names, proof, clock })
  if (!(await completesWithin(clock, ORDER_MS, ordered))) {
    throw new Error(`the authority issued no certificate for ${names[0]} in time`)
  }
  return await ordered
}

/** Returns the account's key, created at the first call and kept in the directory, readable by its owner only. */
export async function accountKeyIn(directory: string): Promise<string> {
  const file = join(directory, 'account.key')
  const kept = await readFile(file, 'utf8').catch(() => null)
  if (kept !== null) return kept
  const made = toPem(await makeKey())
  await writeDurably(file, made, 0o600)
  return made
}

/** Returns the certificate that TLS-ALPN-01 needs (RFC 8737) and its key, in PEM. */
export async function challengeCertificate(challenge: Challenge): Promise<string> {
  const key = await makeKey()
  return `${proofCertificate(challenge, { key, now: new Date() })}${toPem(key)}`
}

async function order(
  authority: Authority,
  { names, proof, clock }: { names: string[]; proof: Proof; clock: Clock },
): Promise<string> {
  try {
    const placed = await placeOrder({ ...authority, clock }, names)
    await prove(placed, proof)
    const key = await makeKey()
    const chain = await placed.issue(signingRequest(names, key))
    return `${chain.trim()}\n${toPem(key).trim()}\n`
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, MAX_REASON_LENGTH)
    throw new Error(`no certificate for ${names[0]} from ${authority.directory}: ${reason}`)
  }
}

/** One challenge after the other, because their proofs may exclude each other. */
async function prove(placed: AcmeOrder, proof: Proof): Promise<void> {
  const offered: Challenge[] = []
  try {
    for (const { identifier, challenges, status } of await placed.authorizations()) {
      // The authority may remember an earlier validation.
      if (status === 'valid') continue
      const found = challenges.find(({ type }) => type === proof.type)
      if (!found) throw new Error(`the authority offers no ${proof.type} for ${identifier.value}`)
      const challenge = {
        name: identifier.value,
        keyAuthorization: shownFor(proof.type, placed.keyAuthorizationOf(found)),
      }
      offered.push(challenge)
      await proof.offer(challenge)
      await placed.prove(found)
    }
  } finally {
    for (const challenge of offered) await proof.withdraw(challenge)
  }
}

/** For DNS the record holds the digest. */
function shownFor(type: Proof['type'], keyAuthorization: string): string {
  return type === 'dns-01'
    ? createHash('sha256').update(keyAuthorization).digest('base64url')
    : keyAuthorization
}
