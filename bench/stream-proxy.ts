// What a stream costs at least in Node: a program that accepts TLS and pipes each connection to an origin, with no rule, no
// route and no count. Prints the port of each origin that it is given, as JSON.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

type Origin = { port: number; protocol: 'tls' | 'postgres' }

const [certificateFile = '', origins = '{}'] = process.argv.slice(2)
const certificate = readFileSync(certificateFile)
/** Resumption is left to what OpenSSL does by itself. */
const secure = { key: certificate, cert: certificate }

const ports: Record<string, number> = {}
for (const [name, { port, protocol }] of Object.entries(JSON.parse(origins) as Record<string, Origin>)) {
  const tls = createTlsServer(secure, (visitor) => {
    const origin = connect({ host: '127.0.0.1', port, noDelay: true })
    visitor.on('error', () => origin.destroy())
    origin.on('error', () => visitor.destroy())
    visitor.pipe(origin).pipe(visitor)
  })
  const server = protocol === 'tls' ? tls : createServer((socket) => void acceptSsl(socket, tls))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ports[name] = (server.address() as AddressInfo).port
}
console.log(JSON.stringify(ports))

/** What a client of PostgreSQL asks for first. */
async function acceptSsl(socket: Socket, tls: ReturnType<typeof createTlsServer>): Promise<void> {
  socket.on('error', () => socket.destroy())
  socket.setNoDelay(true)
  await once(socket, 'readable')
  socket.read(8)
  socket.write('S')
  tls.emit('connection', socket)
}
