// What a host says to renew its certificates (decisions/joining.md): signing requests for its keys, signed with the
// engine's present key and beside its certificate. So what carries it, the server, can neither make one nor change one.

import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { MINUTE } from '../lib/clock.ts'
import { type FleetIdentity, memberOf } from '../lib/fleet-identity.ts'
import { readCertificate } from './certificate.ts'

/** The roles that a host has. */
export const hostRoles = ['engine', 'gateway'] as const
export type HostRole = (typeof hostRoles)[number]

type Asked = {
  instance: string
  at: Date
  /** In DER. */
  requests: Record<HostRole, Buffer>
}

/** A request that was signed by the engine of this host. */
export type ProvenRequest = Asked & {
  host: string
  /** Of the engine's present certificate. */
  issuedAt: Date
}

/** The clocks may differ, and the request is carried at once. */
const FRESH_MS = 2 * MINUTE

const request = z.base64().max(2048)
const schema = z.strictObject({
  at: z.int().min(0),
  instance: z.string().regex(/^[a-z0-9]{4}$/),
  requests: z.strictObject({ engine: request, gateway: request }),
  certificate: z.string().max(4096),
  signature: z.base64().max(256),
})
type Message = z.infer<typeof schema>

export function writeRenewalRequest(engine: FleetIdentity, { instance, at, requests }: Asked): string {
  const message = {
    at: at.getTime(),
    instance,
    requests: {
      engine: requests.engine.toString('base64'),
      gateway: requests.gateway.toString('base64'),
    },
    certificate: engine.certificate,
  }
  const signature = sign('sha256', signedPartOf(message), createPrivateKey(engine.key)).toString('base64')
  return JSON.stringify({ ...message, signature })
}

/** `authority` in PEM. Returns a sentence for a request that is not one of an engine, or is no longer to be answered. */
export function proveRenewalRequest(
  text: string,
  { authority, now }: { authority: string; now: Date },
): ProvenRequest | { refused: string } {
  const message = parse(text)
  const certificate = message && readCertificate(message.certificate)
  if (!message || !certificate) return { refused: 'it sent something else than a host of this version does' }
  const issuer = new X509Certificate(authority)
  const member = memberOf(certificate)
  if (!certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey) || member?.role !== 'engine')
    return { refused: 'its certificate is not that of an engine of this Berth; join it again' }
  if (certificate.validToDate <= now)
    return { refused: `its certificate has ended on ${dayOf(certificate.validToDate)}; join it again` }
  if (certificate.validFromDate.getTime() > now.getTime() + FRESH_MS)
    return { refused: 'its certificate is not valid yet; compare the clocks of both machines' }
  const signature = Buffer.from(message.signature, 'base64')
  if (!verify('sha256', signedPartOf(message), certificate.publicKey, signature))
    return { refused: 'its request is not signed with the key of its engine' }
  if (Math.abs(now.getTime() - message.at) > FRESH_MS)
    return { refused: 'its request is of another time; compare the clocks of both machines' }
  const { engine, gateway } = message.requests
  return {
    host: member.host,
    instance: message.instance,
    at: new Date(message.at),
    issuedAt: certificate.validFromDate,
    requests: { engine: Buffer.from(engine, 'base64'), gateway: Buffer.from(gateway, 'base64') },
  }
}

function parse(text: string): Message | null {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

/** No field can contain a line break. */
function signedPartOf({ at, instance, requests }: Omit<Message, 'certificate' | 'signature'>): Buffer {
  return Buffer.from(['berth-renewal', at, instance, requests.engine, requests.gateway].join('\n'))
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10)
}
