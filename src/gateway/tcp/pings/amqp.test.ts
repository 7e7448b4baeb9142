// AMQP heartbeats through the gateway.

import { once } from 'node:events'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../../test/support/gateway.ts'

let gateway: TestGateway
let origin: RawOrigin
let client: TLSSocket

beforeEach(async () => {
  gateway = await startGateway()
})
afterEach(async () => {
  client.destroy()
  await origin.close()
  await gateway.close()
})

async function greet(servername: string): Promise<TLSSocket> {
  const to = { port: gateway.tlsPort, host: '127.0.0.1', servername }
  const socket = connectTls({ ...to, rejectUnauthorized: false })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}

async function next(socket: TLSSocket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1')
}

describe('AMQP heartbeats', () => {
  const HEARTBEAT = Buffer.from([8, 0, 0, 0, 0, 0, 0, 0xce])
  const tune = Buffer.from([1, 0, 0, 0, 0, 0, 12, 0, 10, 0, 31, 8, 0, 0, 2, 0, 0, 0, 60, 0xce])

  it('do not count as use, do not wake the unit, and are answered while it is frozen', async () => {
    const started = Buffer.from([1, 0, 0, 0, 0, 0, 5, 0, 10, 0, 10, 0, 0xce])
    origin = await startRawOrigin((socket) => socket.once('data', () => socket.write(started)))
    const host = gateway.expose(origin.port, { protocol: 'amqp', unitId: 'u' })
    const [name = ''] = gateway.routes.keys()
    client = await greet(host)
    client.write('AMQP\0\0\x09\x01', 'latin1')
    await next(client)
    client.write(tune)
    await expect.poll(() => origin.connections[0]?.bytesRead).toBe(8 + tune.length)
    await gateway.later(500)
    gateway.use.length = 0
    client.write(HEARTBEAT)
    origin.connections[0]?.write(HEARTBEAT)
    expect(await next(client)).toBe(HEARTBEAT.toString('latin1'))
    await expect.poll(() => origin.connections[0]?.bytesRead).toBe(16 + tune.length)
    await gateway.later(500)
    expect(gateway.use).toEqual([])

    const route = gateway.routes.get(name)
    if (route) gateway.routes.set(name, { ...route, state: 'sleeping', stoppedReason: 'idle', frozen: true })
    gateway.isAwake = () => false
    const kept = next(client)
    await gateway.later(30_000)
    expect(await kept).toBe(HEARTBEAT.toString('latin1'))
    client.write(HEARTBEAT)
    await expect.poll(() => origin.connections[0]?.bytesRead).toBe(24 + tune.length)
    await gateway.later(500)
    expect(gateway.wakes).toEqual([])
  })
})
