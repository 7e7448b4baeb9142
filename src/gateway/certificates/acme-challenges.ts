// Answers ACME challenges over TLS (TLS-ALPN-01, RFC 8737): a client that offers only `acme-tls/1` in its ClientHello
// gets the challenge's certificate, and no data is accepted from it.

import { createSecureContext, createServer, type SecureContext, type Server } from 'node:tls'
import { challengeCertificate, type Proof } from '../../certificates/acme.ts'
import { SECOND } from '../../lib/clock.ts'
import type { Peers } from '../workers/peers.ts'

const PROTOCOL = 'acme-tls/1'
const GREETING_MS = 5 * SECOND
/** The whole ALPN extension of such a ClientHello: its type, three lengths, and its one protocol. */
const OFFERS = Buffer.concat([Buffer.from('0010000d000b0a', 'hex'), Buffer.from(PROTOCOL)])

export type Challenges = {
  proof: Proof
  /** While none is pending, ClientHellos are not examined. */
  arePending(): boolean
  /** Handles connections whose ClientHello is a challenge. */
  server: Server
}

/** With `peers`, other gateways on the same port answer them too. */
export function createChallenges(peers?: Pick<Peers, 'publish'>): Challenges {
  const { pending, server } = createAnswers()
  const withdrawals = new Map<string, () => void>()
  return {
    proof: {
      type: 'tls-alpn-01',
      async offer(challenge) {
        const { name: serverName } = challenge
        const pem = await challengeCertificate(challenge)
        pending.set(serverName, createSecureContext({ cert: pem, key: pem }))
        if (peers) withdrawals.set(serverName, peers.publish({ kind: 'challenge', serverName, pem }))
      },
      async withdraw({ name }) {
        pending.delete(name)
        withdrawals.get(name)?.()
        withdrawals.delete(name)
      },
    },
    arePending: () => pending.size > 0,
    server,
  }
}

/** Answers the challenges that another gateway has. */
export function followChallenges(peers: Pick<Peers, 'follow'>): Omit<Challenges, 'proof'> {
  const { pending, server } = createAnswers()
  peers.follow('challenge', ({ serverName, pem }) => {
    const context = createSecureContext({ cert: pem, key: pem })
    pending.set(serverName, context)
    return () => {
      if (pending.get(serverName) === context) pending.delete(serverName)
    }
  })
  return { arePending: () => pending.size > 0, server }
}

function createAnswers(): { pending: Map<string, SecureContext>; server: Server } {
  const pending = new Map<string, SecureContext>()
  const server = createServer({
    ALPNProtocols: [PROTOCOL],
    minVersion: 'TLSv1.2',
    handshakeTimeout: GREETING_MS,
    SNICallback: (name, answer) => answer(null, pending.get(name.toLowerCase())),
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy())
    socket.destroySoon()
  })
  return { pending, server }
}

/** `greeting` is the beginning of the connection, at least one TLS record. */
export function isChallenge(greeting: Buffer): boolean {
  return greeting.includes(OFFERS)
}
