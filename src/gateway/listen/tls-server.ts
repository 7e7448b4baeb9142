// TLS for connections that another server accepted, and may have read from. Each is emitted as a `connection` event
// of this server, which itself does not listen.

import { createServer, type TLSSocket, type Server as TlsServer } from 'node:tls'
import { callbackify } from 'node:util'
import type { Certificates } from '../certificates/current.ts'
import type { TicketKeys } from '../workers/ticket-keys.ts'
import { acknowledgeNow } from './quick-ack.ts'

export function createTlsServer({
  certificates,
  tickets,
  handshakeMs,
  applications,
  onSecure,
}: {
  certificates: Certificates
  /** Shared with other gateways, under the name of this listener; if absent, this server makes its own. */
  tickets?: { keys: TicketKeys; listener: string }
  handshakeMs: number
  /** The ALPN protocols to accept, in order of preference; if absent, ALPN is ignored. */
  applications?: readonly string[]
  onSecure: (socket: TLSSocket) => void
}): TlsServer {
  const agree = applications && {
    ALPNCallback: ({ protocols }: { protocols: string[] }) =>
      applications.find((known) => protocols.includes(known)),
  }
  const server = createServer({
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeMs,
    SNICallback: callbackify(async (name: string) => await certificates.find(name.toLowerCase())),
    ...agree,
  })
  let ticketKeys: Buffer | null = null
  // For clients that send no name. Without keys of tickets Node makes new ones for each certificate.
  certificates.follow((pem) =>
    server.setSecureContext({ cert: pem, key: pem, ...(ticketKeys && { ticketKeys }) }),
  )
  tickets?.keys.follow(tickets.listener, (keys) => {
    ticketKeys = keys
    server.setTicketKeys(keys)
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy())
    acknowledgeNow(socket)
    onSecure(socket)
  })
  return server
}
