// The connection to the host of a brokered secret: to the name's own address, with TLS verified as any client of this
// host would.

import { once } from 'node:events'
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { decide, notAllowed } from '../decide.ts'
import { dialName } from '../dial.ts'
import type { Door } from '../door.ts'
import { noteFailed, noteRefused } from '../egress-log.ts'
import { type Refused, unreachable } from '../refused.ts'

/** As ALPN names them, the preferred one first. */
export const protocols = ['http/1.1', 'h2'] as const
export type Protocol = (typeof protocols)[number]

const PORT = 443
const HANDSHAKE_MS = 10_000

export class UpstreamError extends Error {
  readonly refused: Refused

  constructor(refused: Refused) {
    super(refused.message)
    this.refused = refused
  }
}

/** What a client is told of a connection to a host that failed. */
export function refusalOf(error: unknown, host: string): Refused {
  return error instanceof UpstreamError ? error.refused : unreachable(host)
}

/** Returns a function that answers with what hosts are verified by: `roots`, in PEM; null for those that come with Node. */
export function upstreamContext(roots: () => Promise<string | null>): () => Promise<SecureContext> {
  // Parsing them takes a while and some memory: all connections share the result, and a process without any has none.
  let made: Promise<SecureContext> | null = null
  return () => {
    made ??= roots().then((ca) => createSecureContext(ca === null ? {} : { ca }))
    return made
  }
}

export async function connectUpstream(
  door: Door,
  {
    machine,
    host,
    trusted,
    protocol,
  }: { machine: string; host: string; trusted: () => Promise<SecureContext>; protocol: Protocol },
  gone: AbortSignal,
): Promise<TLSSocket> {
  const decision = await decide(door, machine, host, PORT)
  const noting = { door, machine, protocol: 'tls', port: PORT } as const
  if (decision.kind === 'refused') {
    noteRefused(noting, decision)
    throw new UpstreamError(notAllowed(decision.reason, host, PORT))
  }
  const failed = (reason: 'unreachable' | 'unverified', refused: Refused) => {
    if (!gone.aborted) noteFailed(noting, decision, reason)
    return new UpstreamError(refused)
  }
  const socket = await dialName(decision.addresses, PORT, gone)
  if (socket === null) throw failed('unreachable', unreachable(host))
  const upstream = connect({
    socket,
    servername: host,
    secureContext: await trusted(),
    ALPNProtocols: [protocol],
  })
  try {
    await once(upstream, 'secureConnect', {
      signal: AbortSignal.any([gone, AbortSignal.timeout(HANDSHAKE_MS)]),
    })
    return upstream
  } catch {
    const unverified = String(upstream.authorizationError ?? '')
    upstream.on('error', () => {})
    upstream.destroy()
    socket.destroy()
    throw unverified
      ? failed('unverified', bad('host_unverified', unverifiedText(host, unverified)))
      : failed('unreachable', bad('host_unreachable', `${host} did not complete the TLS handshake.`))
  }
}

const WRONG = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'it is for other names',
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'it is signed by itself',
} as const satisfies Record<string, string>

/** `code`: Node's, or OpenSSL's for most of them. */
function unverifiedText(host: string, code: string): string {
  const wrong = Object.entries(WRONG).find(([each]) => each === code)?.[1]
  const why = wrong ?? 'it is signed by no authority that the machine of this unit trusts'
  return `The certificate of ${host} cannot be verified: ${why}. So nothing of this request was sent to it.`
}

function bad(code: string, message: string): Refused {
  return { status: 502, code, message }
}
