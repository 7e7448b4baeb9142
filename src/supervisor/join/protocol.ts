// What a host that joins and the door say to each other: one JSON line each, over TLS 1.3. The token tells the host where the
// door is, which certificate it shows, and the secret that it must be told.

import { createHash, type X509Certificate } from 'node:crypto'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { SECOND } from '../../lib/clock.ts'
import { isHostName } from '../../lib/fleet-identity.ts'
import type { Address } from '../../lib/setting-values.ts'

export type JoinToken = Address & {
  /** The name that the certificate will be for. */
  name: string
  /** Of the door's certificate. */
  fingerprint: string
  secret: string
}

/** What a host shows at a door, and by what it knows that it is the right one. */
export type Invitation = Omit<JoinToken, 'name'> | PodInvitation

/** The secret is a token of its service account; `authority` is the certificate of the fleet's, in PEM. */
export type PodInvitation = Address & { secret: string; authority: string }

export const LONGEST_LINE_BYTES = 8192
export const ANSWER_WITHIN_MS = 15 * SECOND
/** A certificate that begins in the future is refused by the machine that it is for. */
export const CLOCKS_APART_MS = 30 * SECOND

const PREFIX = 'berth-join-'

const subnet = z.string().regex(/^10\.\d{1,3}\.0\.0\/16$/)
const host = z.string().regex(/^[0-9A-Za-z.:-]{1,253}$/)
export const addressSchema: z.ZodType<Address> = z.strictObject({ host, port: z.int().min(1).max(65535) })
/** A signing request in DER, as base64. */
const request = z.base64().max(2048)

const tokenSchema = z.tuple([
  z.string().refine(isHostName),
  host,
  z.int().min(1).max(65535),
  z.string().regex(/^[\w-]{43}$/),
  z.string().regex(/^[\w-]{43}$/),
])

const whoAsks = {
  version: z.string().max(32),
  /** Of the join token, or the token of a service account. */
  secret: z.string().max(4096),
}

/** What hosts of all versions say in the same place. */
export const joinRequestOfAny = z.object(whoAsks)

export const joinRequest = z.strictObject({
  ...whoAsks,
  at: z.number(),
  /** The engine and the gateway have keys of their own: the gateway's process, which reads what strangers send, has only its. */
  requests: z.strictObject({ engine: request, gateway: request }),
  instance: z.string().regex(/^[a-z0-9]{4}$/),
  /** Of its units' addresses. */
  subnet,
  /** Others that it can take instead, as the x of 10.x.0.0/16; none if it has had units already. */
  others: z.array(z.int().min(0).max(255)).max(256),
  /** Where the server reaches its engine. */
  engine: addressSchema,
  /** What it says to a connection at that address while it joins. */
  proof: z.string().regex(/^[\w-]{43}$/),
})

const admitted = z.strictObject({
  /** By which it is a host from now on. */
  name: z.string().refine(isHostName),
  certificates: z.strictObject({ engine: z.string(), gateway: z.string() }),
  subnet,
  /** Where the server answers gateways of other machines; null if it does not. */
  link: addressSchema.nullable(),
})

export type Admitted = z.output<typeof admitted>
export const joinAnswer = z.union([admitted, z.strictObject({ refused: z.string() })])

/** What the host is told. */
export class Refusal extends Error {}

export function writeToken({ name, host, port, fingerprint, secret }: JoinToken): string {
  const fields = JSON.stringify([name, host, port, fingerprint, secret])
  return PREFIX + Buffer.from(fields).toString('base64url')
}

/** Throws a sentence for text that is no token. */
export function readToken(text: string): JoinToken {
  try {
    if (!text.startsWith(PREFIX)) throw new Error('another prefix')
    const fields: unknown = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString())
    const [name, host, port, fingerprint, secret] = tokenSchema.parse(fields)
    return { name, host, port, fingerprint, secret }
  } catch (cause) {
    throw new Error(
      'This is no join token: "npm run hosts -- join-token" on the server\'s machine prints one.',
      {
        cause,
      },
    )
  }
}

export function fingerprintOf(certificate: X509Certificate): string {
  return createHash('sha256').update(certificate.raw).digest('base64url')
}

/** Returns the first line. Throws for one that is too long, and when the other side ends before it. */
export async function readLine(from: Readable): Promise<string> {
  let text = ''
  for await (const chunk of from.iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    const end = text.indexOf('\n')
    if (end >= 0) return text.slice(0, end)
    if (text.length > LONGEST_LINE_BYTES) throw new Error('a line that is too long')
  }
  throw new Error('the connection ended')
}
