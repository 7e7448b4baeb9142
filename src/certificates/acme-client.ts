// The part of ACME (RFC 8555) that one order needs. Each request is signed with the account's key, limited in time
// and size, and sent only over https; redirects are refused and proxies ignored.

import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { Agent, request } from 'node:https'
import { z } from 'zod'
import { type Clock, SECOND } from '../lib/clock.ts'

const REQUEST_MS = 20 * SECOND
const MAX_ANSWER_BYTES = 1024 * 1024
/** A nonce works once, and an authority may have dropped it. */
const NONCE_TRIES = 5
/** How often to poll the authority: after 0.5, 1, 2, … seconds. */
const POLLS = 15
const FIRST_POLL_MS = SECOND / 2
const LONGEST_POLL_MS = 10 * SECOND

const directorySchema = z.object({ newNonce: z.url(), newAccount: z.url(), newOrder: z.url() })
const problemSchema = z.object({ type: z.string().default(''), detail: z.string().default('') })
const challengeSchema = z.object({
  type: z.string(),
  url: z.url(),
  token: z.string().default(''),
  status: z.string(),
  error: problemSchema.optional(),
})
const authorizationSchema = z.object({
  status: z.string(),
  identifier: z.object({ value: z.string() }),
  challenges: z.array(challengeSchema),
})
const orderSchema = z.object({
  status: z.string(),
  authorizations: z.array(z.url()),
  finalize: z.url(),
  certificate: z.url().optional(),
  error: problemSchema.optional(),
})

export type AcmeChallenge = z.infer<typeof challengeSchema>
export type AcmeAuthorization = z.infer<typeof authorizationSchema>

export type AcmeOrder = {
  authorizations(): Promise<AcmeAuthorization[]>
  /** Asks the authority to validate the challenge. Throws its reason if it does not accept it. */
  prove(challenge: AcmeChallenge): Promise<void>
  /** Returns the key authorization for a token (RFC 8555, 8.1). */
  keyAuthorizationOf(challenge: AcmeChallenge): string
  /** Call after all names are validated, with a request in DER. Returns the chain in PEM. */
  issue(signingRequest: Buffer): Promise<string>
}

type Settings = {
  directory: string
  email: string | null
  ca: string | null
  accountKey: string
  clock: Clock
}
type Answer = { status: number; location: string; nonce: string; body: string }

/** Creates the account, or finds it by its key, and places an order for the names. */
export async function placeOrder(settings: Settings, names: string[]): Promise<AcmeOrder> {
  const agent = new Agent(settings.ca === null ? {} : { ca: settings.ca })
  const key = createPrivateKey(settings.accountKey)
  const jwk = publicJwk(key)
  const directory = parse(directorySchema, (await exchange(agent, 'GET', settings.directory)).body)
  let nonce = ''
  let account = ''

  /** `payload` null reads the resource at the URL (POST-as-GET). */
  async function ask(url: string, payload: unknown): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      if (nonce === '') nonce = (await exchange(agent, 'HEAD', directory.newNonce)).nonce
      const header = { alg: 'ES256', nonce, url, ...(account === '' ? { jwk } : { kid: account }) }
      const answer = await exchange(agent, 'POST', url, signedBody(key, header, payload))
      nonce = answer.nonce
      if (answer.status < 400) return answer
      const problem = problemSchema.catch({ type: '', detail: '' }).parse(fromJson(answer.body))
      if (problem.type.endsWith(':badNonce') && tries < NONCE_TRIES) continue
      throw new Error(reasonOf(problem) || `it answered ${answer.status}`)
    }
  }

  /** Polls until the status is not one of `passing`; returns the last answer. */
  async function poll<T extends { status: string }>(
    url: string,
    schema: z.ZodType<T>,
    passing: string[],
  ): Promise<T> {
    for (let round = 0, waitMs = FIRST_POLL_MS; round < POLLS; round += 1) {
      const found = parse(schema, (await ask(url, null)).body)
      if (!passing.includes(found.status)) return found
      await settings.clock.sleep(waitMs)
      waitMs = Math.min(waitMs * 2, LONGEST_POLL_MS)
    }
    throw new Error('the order did not finish in time')
  }

  const contact = settings.email === null ? {} : { contact: [`mailto:${settings.email}`] }
  account = (await ask(directory.newAccount, { termsOfServiceAgreed: true, ...contact })).location
  const identifiers = names.map((value) => ({ type: 'dns', value }))
  const placed = await ask(directory.newOrder, { identifiers })
  const order = parse(orderSchema, placed.body)

  return {
    async authorizations() {
      const found: AcmeAuthorization[] = []
      for (const url of order.authorizations)
        found.push(parse(authorizationSchema, (await ask(url, null)).body))
      return found
    },
    keyAuthorizationOf: ({ token }) => `${token}.${thumbprintOf(jwk)}`,
    async prove({ url }) {
      await ask(url, {})
      const challenge = await poll(url, challengeSchema, ['pending', 'processing'])
      if (challenge.status !== 'valid')
        throw new Error(reasonOf(challenge.error) || 'the authority did not accept the proof')
    },
    async issue(signingRequest) {
      const ready = await poll(placed.location, orderSchema, ['pending'])
      if (ready.status !== 'ready') throw new Error(reasonOf(ready.error) || `the order is ${ready.status}`)
      await ask(order.finalize, { csr: signingRequest.toString('base64url') })
      const { status, certificate, error } = await poll(placed.location, orderSchema, ['ready', 'processing'])
      if (status !== 'valid' || certificate === undefined)
        throw new Error(reasonOf(error) || `the order is ${status}`)
      return (await ask(certificate, null)).body
    },
  }
}

type Jwk = { crv: string; kty: string; x: string; y: string }

function publicJwk(key: KeyObject): Jwk {
  const { crv = '', kty = '', x = '', y = '' } = createPublicKey(key).export({ format: 'jwk' })
  if (crv !== 'P-256') throw new Error('the key of the account is not a P-256 key')
  return { crv, kty, x, y }
}

/** RFC 7638: the required members in alphabetical order. */
function thumbprintOf({ crv, kty, x, y }: Jwk): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

/** RFC 7515, in the serialization that ACME requires. */
function signedBody(key: KeyObject, header: object, payload: unknown): string {
  const [protectedPart, payloadPart] = [header, payload].map((part) =>
    part === null ? '' : Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  const content = Buffer.from(`${protectedPart}.${payloadPart}`)
  const signature = sign('sha256', content, { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  return JSON.stringify({ protected: protectedPart, payload: payloadPart, signature })
}

async function exchange(agent: Agent, method: string, url: string, body = ''): Promise<Answer> {
  if (new URL(url).protocol !== 'https:') throw new Error('the authority named an address that is not https')
  const headers = {
    'user-agent': 'berth',
    ...(method === 'POST'
      ? { 'content-type': 'application/jose+json', 'content-length': Buffer.byteLength(body) }
      : {}),
  }
  const signal = AbortSignal.timeout(REQUEST_MS)
  return await new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers, signal }, (response) => {
      const parts: Buffer[] = []
      let bytes = 0
      response.on('error', reject)
      response.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error('the answer of the authority is too long'))
        else parts.push(part)
      })
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          location: String(response.headers.location ?? ''),
          nonce: String(response.headers['replay-nonce'] ?? ''),
          body: Buffer.concat(parts).toString('utf8'),
        }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function parse<T>(schema: z.ZodType<T>, body: string): T {
  const parsed = schema.safeParse(fromJson(body))
  if (!parsed.success) throw new Error('the answer of the authority is not valid ACME')
  return parsed.data
}

function fromJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

/** Returns the reason of a problem, or an empty string if it has none. */
function reasonOf(problem: { type: string; detail: string } | undefined): string {
  return [problem?.detail, problem?.type].filter((part) => part !== undefined && part !== '').join(' ')
}
