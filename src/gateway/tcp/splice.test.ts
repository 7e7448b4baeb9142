// WebSockets through the gateway over HTTP/1.1 and HTTP/2: their bytes pass unchanged.

import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  exchangeRaw,
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'
import { HOUR } from '../../lib/clock.ts'
import { sessionLimits } from '../sessions/session-limits.ts'

const AGREED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

let gateway: TestGateway
let unit: RawOrigin
let host: string
/** The unit’s response to a WebSocket request. */
let reply: string
/** The request heads that the unit received. */
let heads: string[]
const closers: (() => unknown)[] = []

beforeEach(async () => {
  reply = AGREED
  heads = []
  gateway = await startGateway()
  unit = await startRawOrigin((socket) => {
    socket.once('data', (bytes) => {
      heads.push(bytes.toString('latin1'))
      socket.write(reply, 'latin1')
      // After the handshake the unit echoes everything.
      socket.pipe(socket)
    })
  })
  host = gateway.expose(unit.port, { unitId: 'u', name: 'ws-abcdefghij' })
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await expect.poll(() => gateway.gateway.count().visits).toBe(0)
  await gateway.close()
  await unit.close()
})

const asking = (...headers: string[]) =>
  [
    'GET /chat?x=y HTTP/1.1',
    `Host: ${host}`,
    'Connection: keep-alive, Upgrade',
    'Upgrade: WebSocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
    '\r\n',
  ].join('\r\n')

/** Opens a WebSocket and completes its handshake. */
async function open(first = ''): Promise<Socket> {
  const socket = connect(gateway.port, '127.0.0.1')
  closers.push(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(asking() + first)
  const head = await readUntil(socket, '\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 101 .*\r\n\r\n$/s)
  return socket
}

async function readUntil(stream: Duplex, end: string): Promise<string> {
  let text = ''
  while (!text.endsWith(end)) {
    const chunk: Buffer | null = stream.read(1)
    if (chunk) text += chunk.toString('latin1')
    else await once(stream, 'readable')
  }
  return text
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('a WebSocket', () => {
  it('forwards the handshake and then bytes in both directions', async () => {
    const socket = await open()
    socket.write('\x81\x02hi', 'latin1')
    expect(await readUntil(socket, 'hi')).toBe('\x81\x02hi')
    expect(heads[0]).toMatch(/^GET \/chat\?x=y HTTP\/1\.1\r\n/)
    expect(heads[0]).toMatch(/sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==/i)
    expect(heads[0]?.match(/^upgrade:/gim)).toHaveLength(1)
    expect(heads[0]?.match(/^connection: upgrade/gim)).toHaveLength(1)
    expect(heads[0]).toMatch(/^x-forwarded-for: 127\.0\.0\.1/m)
  })

  it('loses no bytes sent before the handshake was complete', async () => {
    reply = `${AGREED}hello`
    const socket = await open('early')
    expect(await readUntil(socket, 'early')).toBe('helloearly')
  })

  it('that the unit refuses gets the unit’s response', async () => {
    reply = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nX-Why: so\r\n\r\nno'
    const answer = await exchangeRaw(gateway.port, asking())
    expect(answer).toMatch(/^HTTP\/1\.1 403 /)
    expect(answer).toMatch(/x-why: so/i)
    expect(answer).toMatch(/no$/)
  })

  it('gets 502 if the unit switches to another protocol', async () => {
    reply = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n'
    expect(await exchangeRaw(gateway.port, asking())).toMatch(/^HTTP\/1\.1 502 /)
  })

  it('at an unknown name gets 404', async () => {
    host = `nobody-abcdefghij.berth.localhost`
    expect(await exchangeRaw(gateway.port, asking())).toMatch(/^HTTP\/1\.1 404 /)
  })

  it('wakes a sleeping unit', async () => {
    gateway.expose(unit.port, { unitId: 'u', name: 'ws-abcdefghij', state: 'sleeping' })
    gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    const socket = await open()
    socket.write('hi')
    expect(await readUntil(socket, 'hi')).toBe('hi')
    expect(gateway.wakes.length).toBeGreaterThan(0)
  })

  it('wakes a frozen unit with the next message of its client', async () => {
    const socket = await open()
    socket.write('first')
    expect(await readUntil(socket, 'first')).toBe('first')
    gateway.isAwake = () => false
    expect(gateway.wakes).toHaveLength(0)
    socket.write('more')
    expect(await readUntil(socket, 'more')).toBe('more')
    expect(gateway.wakes).toHaveLength(1)
  })

  it('does not wake a frozen unit because of earlier messages', async () => {
    const socket = await open()
    socket.write('first')
    expect(await readUntil(socket, 'first')).toBe('first')
    gateway.expose(unit.port, { unitId: 'u', name: 'ws-abcdefghij', state: 'sleeping', frozen: true })
    await gateway.later(500)
    await gateway.later(500)
    expect(gateway.wakes).toHaveLength(0)
  })

  it('counts as use only when bytes pass', async () => {
    const socket = await open()
    expect(gateway.use).toEqual(['begin u', 'end u'])
    await gateway.later(0)
    gateway.use.length = 0
    await gateway.later(sessionLimits.patienceMs.answering)
    expect(gateway.use).toEqual([])
    socket.write('hi')
    await readUntil(socket, 'hi')
    await gateway.later(0)
    expect(gateway.use).toEqual(['touch u'])
  })

  const PING = '\x89\x82\x01\x02\x03\x04\x69\x6b'
  const TEXT = '\x81\x82\x01\x02\x03\x04\x69\x6b'

  it('does not count as use by pings, which are forwarded unchanged', async () => {
    const socket = await open()
    const [unitSide] = unit.connections
    unitSide?.unpipe()
    await gateway.later(0)
    gateway.use.length = 0
    let heard = ''
    unitSide?.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1')
    })
    unitSide?.resume()
    for (const byte of PING + PING) socket.write(byte, 'latin1')
    unitSide?.write('\x8a\x02hi\x89\x00', 'latin1')
    expect(await readUntil(socket, '\x89\x00')).toBe('\x8a\x02hi\x89\x00')
    await expect.poll(() => heard).toBe(PING + PING)
    await gateway.later(500)
    expect(gateway.use).toEqual([])
    socket.write(TEXT, 'latin1')
    await expect.poll(() => heard).toBe(PING + PING + TEXT)
    await gateway.later(500)
    expect(gateway.use).toEqual(['touch u'])
  })

  it('does not wake a frozen unit by pings; the gateway answers them itself', async () => {
    const socket = await open()
    const [unitSide] = unit.connections
    unitSide?.unpipe()
    unitSide?.resume()
    gateway.expose(unit.port, { unitId: 'u', name: 'ws-abcdefghij', state: 'sleeping', frozen: true })
    gateway.isAwake = () => false
    await gateway.later(500)
    for (const _time of [1, 2, 3]) {
      socket.write(PING, 'latin1')
      await expect
        .poll(() => (unitSide?.bytesRead ?? 0) % PING.length)
        .toBe((heads[0]?.length ?? 0) % PING.length)
      await gateway.later(500)
      expect(await readUntil(socket, '\x8a\x02hi')).toBe('\x8a\x02hi')
    }
    expect([gateway.wakes, socket.closed]).toEqual([[], false])
    socket.write(TEXT, 'latin1')
    await expect.poll(() => gateway.wakes).toHaveLength(1)
  })

  it('ends when its endpoint is deleted', async () => {
    const socket = await open()
    await gateway.later(0)
    expect(socket.destroyed).toBe(false)
    gateway.routes.clear()
    await gateway.later(0)
    socket.resume()
    await expect.poll(() => socket.closed).toBe(true)
    await expect.poll(() => unit.connections[0]?.closed).toBe(true)
  })

  it.each<[string, (socket: Socket) => void, (unitSide: Socket) => void]>([
    ['when the client closes', (socket) => socket.end(), () => {}],
    ['when the client resets', (socket) => socket.resetAndDestroy(), () => {}],
    ['when the unit closes', () => {}, (unitSide) => unitSide.end()],
    ['when the unit resets', () => {}, (unitSide) => unitSide.resetAndDestroy()],
  ])('ends on both sides %s', async (_what, byVisitor, byUnit) => {
    const socket = await open()
    socket.resume()
    byVisitor(socket)
    const [unitSide] = unit.connections
    if (unitSide) byUnit(unitSide)
    await expect.poll(() => [socket.closed, unit.connections[0]?.closed]).toEqual([true, true])
  })

  it('applies backpressure to the sender and delivers everything once the client reads again', async () => {
    const socket = await open()
    const [unitSide] = unit.connections
    unitSide?.unpipe()
    socket.pause()
    const chunk = Buffer.alloc(64 * 1024)
    const most = 256 * 1024 * 1024
    let sent = 0
    const fill = () => {
      while (unitSide?.write(chunk) && sent < most) sent += chunk.length
    }
    unitSide?.on('drain', fill)
    fill()
    // On a busy machine buffers fill slowly. Without backpressure the sender reaches the maximum.
    const sentMeanwhile = async () => {
      const before = sent
      await pause(300)
      return sent - before
    }
    await expect.poll(sentMeanwhile, { timeout: 20_000 }).toBe(0)
    expect(sent).toBeLessThan(most)
    await gateway.later(2 * HOUR)
    unitSide?.removeListener('drain', fill)
    const all = unitSide?.bytesWritten ?? 0
    unitSide?.end()
    // The sender has closed, but the connection still belongs to it.
    await gateway.later(2 * HOUR)
    expect(socket.closed).toBe(false)
    socket.resume()
    await expect.poll(() => socket.closed).toBe(true)
    expect(socket.bytesRead).toBeGreaterThanOrEqual(all)
  })

  it('over HTTP/2 works with a unit that supports only HTTP/1.1', async () => {
    const session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
      servername: host,
      rejectUnauthorized: false,
    })
    closers.push(() => session.destroy())
    await once(session, 'remoteSettings')
    expect(session.remoteSettings.enableConnectProtocol).toBe(true)
    const stream = session.request(
      {
        ':method': 'CONNECT',
        ':protocol': 'websocket',
        ':path': '/chat?x=y',
        ':scheme': 'https',
        ':authority': host,
        'sec-websocket-version': '13',
      },
      { endStream: false },
    )
    const [head] = await once(stream, 'response')
    expect(head).toMatchObject({ ':status': 200 })
    expect(head).not.toHaveProperty('sec-websocket-accept')
    stream.write('\x81\x02hi', 'latin1')
    expect(await readUntil(stream, 'hi')).toBe('\x81\x02hi')
    expect(heads[0]).toMatch(/^GET \/chat\?x=y HTTP\/1\.1\r\n/)
    expect(heads[0]).toMatch(/^sec-websocket-key: \S{24}\r$/im)
    stream.end()
    await once(stream, 'close')
    await expect.poll(() => unit.connections[0]?.closed).toBe(true)
  })

  it('over HTTP/2 is refused for CONNECT with other protocols', async () => {
    const session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
      servername: host,
      rejectUnauthorized: false,
    })
    closers.push(() => session.destroy())
    await once(session, 'remoteSettings')
    for (const protocol of ['connect-udp', undefined]) {
      const stream = session.request({
        ':method': 'CONNECT',
        ':authority': host,
        ...(protocol === undefined ? {} : { ':protocol': protocol, ':path': '/', ':scheme': 'https' }),
      })
      const [head] = await once(stream, 'response')
      expect(head).toMatchObject({ ':status': 400 })
      stream.close()
    }
    expect(unit.connections).toEqual([])
  })
})
