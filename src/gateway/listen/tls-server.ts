// TLS as visitors get it, on connections that were accepted elsewhere and perhaps spoken on already: whoever did so
// emits each as a `connection` of this server, which listens nowhere.

import { createServer, type TLSSocket, type Server as TlsServer } from 'node:tls'
import { callbackify } from 'node:util'
import type { Certificates } from '../certificates/current.ts'
import { acknowledgeNow } from './quick-ack.ts'

export function createTlsServer({
  certificates,
  handshakeMs,
  applications,
  onSecure,
}: {
  certificates: Certificates
  handshakeMs: number
  /** What is agreed on where a client offers it, in this order; none: what it offers is not looked at. */
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
  // For clients that name nobody.
  certificates.follow((pem) => server.setSecureContext({ cert: pem, key: pem }))
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy())
    acknowledgeNow(socket)
    onSecure(socket)
  })
  return server
}
