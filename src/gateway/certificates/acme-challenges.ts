// How the gateway proves to an authority that a name is its own (TLS-ALPN-01, RFC 8737): whoever offers nothing but
// `acme-tls/1` in its greeting is shown a certificate made for that, and no bytes are taken from it.

import { createSecureContext, createServer, type SecureContext, type Server } from 'node:tls'
import { challengeCertificate, type Proof } from '../../certificates/acme.ts'
import { SECOND } from '../../lib/clock.ts'

const PROTOCOL = 'acme-tls/1'
const GREETING_MS = 5 * SECOND
/** The extension of a greeting as a whole: its type, three lengths, and the one protocol there may be. */
const OFFERS = Buffer.concat([Buffer.from('0010000d000b0a', 'hex'), Buffer.from(PROTOCOL)])

export type Challenges = {
  proof: Proof
  /** While there is none, greetings are not looked at. */
  arePending(): boolean
  /** Takes connections whose greeting is a challenge. */
  server: Server
}

export function createChallenges(): Challenges {
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
  return {
    proof: {
      type: 'tls-alpn-01',
      async offer(challenge) {
        const pem = await challengeCertificate(challenge)
        pending.set(challenge.name, createSecureContext({ cert: pem, key: pem }))
      },
      async withdraw({ name }) {
        pending.delete(name)
      },
    },
    arePending: () => pending.size > 0,
    server,
  }
}

/** The first bytes of a connection; those of one record at least. */
export function isChallenge(greeting: Buffer): boolean {
  return greeting.includes(OFFERS)
}
