// A certificate from an authority that speaks ACME (RFC 8555). Everything is bounded in time: a failed order is not placed
// again in here, for the caller knows when.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, MINUTE } from '../lib/clock.ts'
import { completesWithin } from '../lib/concurrency/completes-within.ts'
import { writeDurably } from '../lib/write-durably.ts'
import { type AcmeOrder, placeOrder } from './acme-client.ts'
import { makeKey, proofCertificate, signingRequest, toPem } from './signed.ts'

export type Authority = {
  /** URL of its directory. */
  directory: string
  /** Where it may write to the operator. */
  email: string | null
  /** Whom to trust in its place, in PEM; null: whom Node does. */
  ca: string | null
  accountKey: string
}

/** What has to be shown to prove that a name is ours: for DNS the value of the record itself. */
export type Challenge = { name: string; keyAuthorization: string }

/** How that is shown. What was offered is withdrawn, whatever becomes of the order. */
export type Proof = {
  type: 'dns-01' | 'tls-alpn-01'
  offer(challenge: Challenge): Promise<void>
  withdraw(challenge: Challenge): Promise<void>
}

/** Records take their time to be seen everywhere. */
const ORDER_MS = 15 * MINUTE
const MAX_REASON_LENGTH = 500

/** Chain and key, in PEM. Throws a sentence that says why there is none. */
export async function orderCertificate(
  authority: Authority,
  { names, proof, clock }: { names: string[]; proof: Proof; clock: Clock },
): Promise<string> {
  const ordered = order(authority, { names, proof, clock })
  if (!(await completesWithin(clock, ORDER_MS, ordered))) {
    throw new Error(`the authority has issued no certificate for ${names[0]} in time`)
  }
  return await ordered
}

/** The key an account is known by: made once, and kept in the directory for its owner alone. */
export async function accountKeyIn(directory: string): Promise<string> {
  const file = join(directory, 'account.key')
  const kept = await readFile(file, 'utf8').catch(() => null)
  if (kept !== null) return kept
  const made = toPem(await makeKey())
  await writeDurably(file, made, 0o600)
  return made
}

/** What TLS-ALPN-01 wants to be shown (RFC 8737), with its key, in PEM. */
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

/** One after the other, since what proves the one may stand beside what proves the other. */
async function prove(placed: AcmeOrder, proof: Proof): Promise<void> {
  const offered: Challenge[] = []
  try {
    for (const { identifier, challenges, status } of await placed.authorizations()) {
      // It may remember that it was proved a while ago.
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

/** A record of DNS has the digest in it. */
function shownFor(type: Proof['type'], keyAuthorization: string): string {
  return type === 'dns-01'
    ? createHash('sha256').update(keyAuthorization).digest('base64url')
    : keyAuthorization
}
