// Cancel requests in plain text, which identify the session only by its key (reliability S33).

import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../../test/support/gateway.ts'
import { AUTHENTICATED, cancelOf, keyed, READY, STARTUP } from '../../../../test/support/postgres-messages.ts'
import { findBackendKey } from './messages.ts'

const KEY = Buffer.from('0000002a11223344', 'hex')

let gateway: TestGateway
let origins: RawOrigin[]
let clients: Socket[]

beforeEach(async () => {
  gateway = await startGateway({ headersMs: 1000 })
  origins = []
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await Promise.all(origins.map((origin) => origin.close()))
  await gateway.close()
})

/** Starts a server that gives every session this key, sent byte by byte; records the cancel requests it gets. */
async function startServer(key: Buffer): Promise<{ host: string; cancels: Buffer[] }> {
  const cancels: Buffer[] = []
  const origin = await startRawOrigin((socket) => {
    socket.setNoDelay(true)
    socket.once('data', (said) => {
      if (said.equals(STARTUP)) {
        for (const byte of Buffer.concat([AUTHENTICATED, keyed(key), READY])) socket.write(Buffer.of(byte))
        return
      }
      cancels.push(said)
      socket.end()
    })
  })
  origins.push(origin)
  return { host: gateway.expose(origin.port, { protocol: 'postgres' }), cancels }
}

async function beginSession(servername: string): Promise<TLSSocket> {
  const to = { port: gateway.tlsPort, host: '127.0.0.1', servername, ALPNProtocols: ['postgresql'] }
  const client = connectTls({ ...to, rejectUnauthorized: false })
  clients.push(client)
  client.on('error', () => {})
  client.write(STARTUP)
  let said = Buffer.alloc(0)
  while (!said.includes(READY)) {
    const [chunk] = (await once(client, 'data')) as [Buffer]
    said = Buffer.concat([said, chunk])
  }
  return client
}

/** Sends the request and waits until the peer closes. */
async function cancel(request: Buffer): Promise<void> {
  const client = connectTcp(gateway.tlsPort, '127.0.0.1')
  clients.push(client)
  client.on('error', () => {})
  // In two chunks, as a network may deliver it.
  client.write(request.subarray(0, 9))
  setImmediate(() => client.write(request.subarray(9)))
  client.resume()
  await once(client, 'close')
}

describe('a plain-text cancel request', () => {
  it('is forwarded only to the unit that issued its key', async () => {
    const [server, other] = [await startServer(KEY), await startServer(Buffer.from(KEY).fill(9, 4))]
    await beginSession(server.host)
    await beginSession(other.host)
    await cancel(cancelOf(KEY))
    expect([server.cancels, other.cancels]).toEqual([[cancelOf(KEY)], []])
  })

  it('with an unknown or expired key is not forwarded and wakes no unit', async () => {
    const server = await startServer(KEY)
    const session = await beginSession(server.host)
    await cancel(cancelOf(Buffer.from(KEY).fill(7)))
    session.destroy()
    await expect.poll(() => gateway.gateway.count().visits).toBe(0)
    await cancel(cancelOf(KEY))
    expect(server.cancels).toEqual([])
    expect(gateway.wakes).toEqual([])
  })

  it('is not forwarded while two units have issued the same key', async () => {
    const [server, copier] = [await startServer(KEY), await startServer(KEY)]
    await beginSession(server.host)
    const copied = await beginSession(copier.host)
    await cancel(cancelOf(KEY))
    expect([server.cancels, copier.cancels]).toEqual([[], []])
    copied.destroy()
    await expect.poll(() => gateway.gateway.count().visits).toBe(1)
    await cancel(cancelOf(KEY))
    expect(server.cancels).toEqual([cancelOf(KEY)])
  })

  it('that stays incomplete is closed', async () => {
    await cancel(cancelOf(KEY).subarray(0, 12))
  })
})

describe('a cancel request over TLS', () => {
  it('is forwarded, and the connection is then closed', async () => {
    const { host, cancels } = await startServer(KEY)
    const to = { port: gateway.tlsPort, host: '127.0.0.1', servername: host, ALPNProtocols: ['postgresql'] }
    const client = connectTls({ ...to, rejectUnauthorized: false })
    clients.push(client)
    client.write(cancelOf(KEY))
    await once(client.resume(), 'close')
    expect(cancels).toEqual([cancelOf(KEY)])
    await expect.poll(() => gateway.gateway.count().visits).toBe(0)
  })
})

describe('findBackendKey', () => {
  it('finds the key after other messages of the server and returns null after ReadyForQuery', () => {
    const said = Buffer.concat([AUTHENTICATED, keyed(KEY), READY])
    expect(findBackendKey(said)).toEqual(KEY)
    expect(findBackendKey(said.subarray(0, AUTHENTICATED.length + 8))).toBe('more')
    expect(findBackendKey(Buffer.concat([READY, keyed(KEY)]))).toBeNull()
  })

  it('gives up after a size limit and on malformed messages', () => {
    const notice = Buffer.concat([Buffer.from('4e00003004', 'hex'), Buffer.alloc(0x3000)])
    expect(findBackendKey(notice)).toBe('more')
    expect(findBackendKey(Buffer.concat([notice, notice]))).toBeNull()
    expect(findBackendKey(Buffer.from('4b00000000', 'hex'))).toBeNull()
    expect(findBackendKey(Buffer.from('4bffffffff', 'hex'))).toBeNull()
  })
})
