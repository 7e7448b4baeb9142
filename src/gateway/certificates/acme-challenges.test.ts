// What the gateway presents to ACME authorities and other clients while a challenge is pending.

import type { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { DOMAIN, startGateway, type TestGateway } from '../../../test/support/gateway.ts'
import { type Challenges, createChallenges } from './acme-challenges.ts'

const NAME = `web-abcdefghij.${DOMAIN}`
/** The object identifier of the acmeIdentifier extension of RFC 8737, in DER. */
const ACME_IDENTIFIER = Buffer.from('06082b0601050507011f', 'hex')

let gateway: TestGateway
let challenges: Challenges
let clients: Duplex[]

beforeEach(async () => {
  challenges = createChallenges()
  gateway = await startGateway(
    { headersMs: 1000 },
    { certificatesBeside: async ({ followed }) => ({ ...followed, challenges }) },
  )
  await challenges.proof.offer({ name: NAME, keyAuthorization: 'token.thumbprint' })
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await gateway.close()
})

function greet(alpn: string[], { servername = NAME, over }: { servername?: string; over?: Duplex } = {}) {
  const to = over ? { socket: over } : { port: gateway.tlsPort, host: '127.0.0.1' }
  const client = connectTls({ ...to, servername, ALPNProtocols: alpn, rejectUnauthorized: false })
  clients.push(client)
  return client
}

async function shown(client: TLSSocket): Promise<X509Certificate> {
  await once(client, 'secureConnect')
  const certificate = client.getPeerX509Certificate()
  if (certificate === undefined) throw new Error('nothing was shown')
  return certificate
}

async function refused(client: TLSSocket): Promise<void> {
  client.on('error', () => {})
  await new Promise((resolve) => client.once('close', resolve))
}

const isProof = ({ raw }: X509Certificate) => raw.includes(ACME_IDENTIFIER)

/** Returns a connection that sends everything in chunks of this many bytes. */
function inPieces(bytes: number): Duplex {
  const socket: Socket = connectTcp({ port: gateway.tlsPort, host: '127.0.0.1', noDelay: true })
  clients.push(socket)
  const pieces = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      const send = (from: number) => {
        if (from >= chunk.length || socket.destroyed) return done()
        socket.write(chunk.subarray(from, from + bytes))
        setTimeout(() => send(from + bytes), 1)
      }
      send(0)
    },
  })
  socket.on('data', (chunk) => pieces.push(chunk))
  socket.on('close', () => pieces.destroy())
  socket.on('error', () => {})
  return pieces
}

it('a client that offers acme-tls/1 gets the challenge certificate, and the connection is then closed', async () => {
  const client = greet(['acme-tls/1'])
  const certificate = await shown(client)
  expect(client.alpnProtocol).toBe('acme-tls/1')
  expect(isProof(certificate)).toBe(true)
  expect(certificate.subjectAltName).toBe(`DNS:${NAME}`)
  client.resume()
  await once(client, 'close')
})

it('a client that sends its ClientHello in chunks gets the challenge certificate too', async () => {
  expect(isProof(await shown(greet(['acme-tls/1'], { over: inPieces(40) })))).toBe(true)
})

it.each([[['h2']], [['http/1.1']], [['acme-tls/1', 'h2']]])(
  'a client that offers %j gets the regular certificate',
  async (alpn) => {
    expect(isProof(await shown(greet(alpn)))).toBe(false)
    expect(isProof(await shown(greet(alpn, { over: inPieces(100) })))).toBe(false)
  },
)

it('an acme-tls/1 client that asks for another name is refused', async () => {
  const client = greet(['acme-tls/1'], { servername: `web-bbbbbbbbbb.${DOMAIN}` })
  await refused(client)
  expect(client.getPeerX509Certificate()).toBeUndefined()
})

it('a ClientHello that never completes ends the connection', async () => {
  const client = connectTcp(gateway.tlsPort, '127.0.0.1')
  clients.push(client)
  client.write(Buffer.from('160301', 'hex'))
  client.resume()
  await once(client, 'close')
})

it('a withdrawn challenge is no longer presented', async () => {
  await challenges.proof.withdraw({ name: NAME, keyAuthorization: 'token.thumbprint' })
  expect(challenges.arePending()).toBe(false)
  const client = greet(['acme-tls/1'])
  await refused(client)
  expect(client.getPeerX509Certificate()).toBeUndefined()
})
