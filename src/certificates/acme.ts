// A certificate from an authority that speaks ACME (RFC 8555). The protocol is acme-client's, which is loaded only
// where somebody asks for a certificate. Everything is bounded in time: nothing is tried again in here, that is for
// whoever asked, who knows when.

import { readFile } from 'node:fs/promises'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { type Clock, MINUTE, SECOND } from '../lib/clock.ts'
import { doneWithin } from '../lib/concurrency/completes-within.ts'
import { writeDurably } from '../lib/write-durably.ts'

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

const REQUEST_MS = 20 * SECOND
const MOST_ANSWER_BYTES = 1024 * 1024
/** Records take their time to be seen everywhere. */
const ORDER_MS = 15 * MINUTE
/** How often the authority is asked whether it is through: after 0.5, 1, 2, … seconds. */
const polling = { backoffMin: SECOND / 2, backoffMax: 10 * SECOND, backoffAttempts: 15 }
const MOST_REASON_LENGTH = 500

/** Chain and key, in PEM. Throws a sentence that says why there is none. */
export async function orderCertificate(
  authority: Authority,
  { names, proof, clock }: { names: string[]; proof: Proof; clock: Clock },
): Promise<string> {
  const ordered = order(authority, names, proof)
  if (!(await doneWithin(clock, ORDER_MS, ordered))) {
    throw new Error(`the authority has issued no certificate for ${names[0]} in time`)
  }
  return await ordered
}

/** The key an account is known by: made once, and kept in the directory for its owner alone. */
export async function accountKeyIn(directory: string): Promise<string> {
  const file = join(directory, 'account.key')
  const kept = await readFile(file, 'utf8').catch(() => null)
  if (kept !== null) return kept
  const made = String(await (await load()).crypto.createPrivateEcdsaKey())
  await writeDurably(file, made, 0o600)
  return made
}

/** What TLS-ALPN-01 wants to be shown (RFC 8737), with its key, in PEM. */
export async function challengeCertificate({ name, keyAuthorization }: Challenge): Promise<string> {
  const { crypto } = await load()
  const key = await crypto.createPrivateEcdsaKey()
  const authorization = { identifier: { type: 'dns', value: name } }
  // It looks at nothing else of an authorization.
  const made = await crypto.createAlpnCertificate(authorization as never, keyAuthorization, key)
  return made.map(String).join('\n')
}

async function load() {
  const { default: acme } = await import('acme-client')
  Object.assign(acme.axios.defaults, {
    timeout: REQUEST_MS,
    maxContentLength: MOST_ANSWER_BYTES,
    maxRedirects: 0,
    proxy: false,
    // A limit that is reached may say "in an hour": nobody waits in here for that.
    acmeSettings: { retryMaxAttempts: 0 },
  })
  return acme
}

async function order(authority: Authority, names: string[], proof: Proof): Promise<string> {
  const acme = await load()
  acme.axios.defaults.httpsAgent = new Agent(authority.ca === null ? {} : { ca: authority.ca })
  const { directory: directoryUrl, accountKey, email } = authority
  const client = new acme.Client({ directoryUrl, accountKey, ...polling })
  try {
    await client.createAccount({
      termsOfServiceAgreed: true,
      ...(email === null ? {} : { contact: [`mailto:${email}`] }),
    })
    const placed = await client.createOrder({ identifiers: names.map((value) => ({ type: 'dns', value })) })
    await prove(client, await client.getAuthorizations(placed), proof)
    const [key, request] = await acme.crypto.createCsr(
      { altNames: names },
      await acme.crypto.createPrivateEcdsaKey(),
    )
    const chain = await client.getCertificate(await client.finalizeOrder(placed, request))
    return `${chain.trim()}\n${String(key).trim()}\n`
  } catch (error) {
    // The error itself carries the whole request, signed with the account's key.
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, MOST_REASON_LENGTH)
    throw new Error(`no certificate for ${names[0]} from ${directoryUrl}: ${reason}`)
  }
}

type Client = InstanceType<Awaited<ReturnType<typeof load>>['Client']>
type Authorization = Awaited<ReturnType<Client['getAuthorizations']>>[number]

/** One after the other, since what proves the one may stand beside what proves the other. */
async function prove(client: Client, authorizations: Authorization[], proof: Proof): Promise<void> {
  const offered: Challenge[] = []
  try {
    for (const { identifier, challenges, status } of authorizations) {
      // It may remember that it was proved a while ago.
      if (status === 'valid') continue
      const found = challenges.find(({ type }) => type === proof.type)
      if (!found) throw new Error(`the authority offers no ${proof.type} for ${identifier.value}`)
      const keyAuthorization = await client.getChallengeKeyAuthorization(found)
      const challenge = { name: identifier.value, keyAuthorization }
      offered.push(challenge)
      await proof.offer(challenge)
      await client.completeChallenge(found)
      await client.waitForValidStatus(found)
    }
  } finally {
    for (const challenge of offered) await proof.withdraw(challenge)
  }
}
