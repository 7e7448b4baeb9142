// Connections that break or stall at each byte and on either side (reliability F26, L4). The process must not end, no
// connection may stay open, and other clients must not be affected.

import { connect, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  exchangeRaw,
  type Origin,
  startGateway,
  startOrigin,
  startRawOrigin,
  type TestGateway,
  VISITOR,
} from '../../test/support/gateway.ts'
import { sessionLimits } from './sessions/session-limits.ts'

let gateway: TestGateway
let origin: Origin
let host: string
const closers: (() => unknown)[] = []

beforeAll(async () => {
  gateway = await startGateway({ headersMs: 1000, connectionsPerPeer: 200 })
  origin = await startOrigin((asked, response) => {
    asked.resume()
    if (asked.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    } else if (asked.url === '/large') {
      response.write(Buffer.alloc(1_000_000))
      response.end()
    } else asked.once('end', () => response.end('here'))
  })
  host = gateway.expose(origin.port)
})
afterAll(async () => {
  await gateway.close()
  await origin.close()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await expect.poll(() => gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
  // A new client is served as before.
  const after = await exchangeRaw(
    gateway.port,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  )
  expect(after).toMatch(/^HTTP\/1\.1 200 .*here/s)
})

/** Of this thread: other files of tests open and close theirs meanwhile in the same process. */
const openSockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** With their headers. */
const EARLY_HINTS = /^HTTP\/1\.1 103 [^\r]*\r\n(?:[^\r\n]+\r\n)*\r\n/

type End = (socket: Socket) => void
const ends: [string, End][] = [
  ['closes its connection', (socket) => socket.end()],
  [
    'resets its connection',
    (socket) => (socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy()),
  ],
  ['sends garbage', (socket) => socket.end(Buffer.from('\0\xff\r\n\r\n}{'.repeat(10), 'latin1'))],
]

/** Opens a connection, sends these bytes, ends it in the given way, and waits until it is closed. */
async function sendAndEnd(bytes: string, end: End): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port: gateway.port, localAddress: VISITOR })
  socket.on('error', () => {})
  socket.resume()
  await new Promise((resolve) => socket.once('connect', resolve))
  socket.write(bytes, 'latin1')
  // Sometimes in one packet with the bytes, sometimes after them.
  if (bytes.length % 2 === 0) await pause(2)
  end(socket)
  await Promise.race([new Promise((resolve) => socket.once('close', resolve)), pause(200)])
  socket.destroy()
}

describe.each(ends)('a client that %s', (_what, end) => {
  const requests = (): [string, string][] => [
    ['a request', `GET /large HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a body', `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\n\r\nabcde`],
    [
      'chunks',
      `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n`,
    ],
    ['an event stream', `GET /events HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    [
      'an upgrade',
      `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\nabc`,
    ],
    [
      'an upgrade of a malformed path',
      `GET http://[ HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
  ]

  it('at any byte of a request leaves no connection or file descriptor open', async () => {
    const before = openSockets()
    for (const [, bytes] of requests()) {
      const cuts = Array.from({ length: bytes.length + 1 }, (_, at) => at)
      // Batches of 50 are fast and stay below the connection limit.
      for (let at = 0; at < cuts.length; at += 50) {
        await Promise.all(cuts.slice(at, at + 50).map((cut) => sendAndEnd(bytes.slice(0, cut), end)))
      }
    }
    await expect.poll(() => gateway.gateway.count().connections).toBe(0)
    // Only keep-alive connections to the unit may remain.
    await expect.poll(openSockets).toBeLessThan(before + 30)
  }, 60_000)
})

describe.each(ends)('a unit that %s', (_what, end) => {
  const answers: [string, string][] = [
    ['an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n'],
    [
      'answers before the answer',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No\r\n\r\n',
    ],
    ['an upgrade', 'HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nabc'],
  ]

  it('at any byte of a response leads to its status, 502 or an aborted response', async () => {
    let bytes = ''
    const unit = await startRawOrigin((socket) => {
      const answer = bytes
      socket.once('data', () => {
        socket.write(answer, 'latin1')
        setTimeout(() => end(socket), answer.length % 2 === 0 ? 0 : 3)
      })
    })
    closers.push(() => unit.close())
    for (const [kind, whole] of answers) {
      const upgrade =
        kind === 'an upgrade' ? 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n' : ''
      for (let cut = 0; cut <= whole.length; cut += 1) {
        bytes = whole.slice(0, cut)
        // A new endpoint per request, so that each uses a new connection to the unit.
        const to = gateway.expose(unit.port)
        const answer = await exchangeRaw(
          gateway.port,
          `GET / HTTP/1.1\r\nHost: ${to}\r\n${upgrade}Connection: close\r\n\r\n`,
          30,
        )
        // The response is complete or visibly broken, and has no status other than the unit's or 502. Early hints come before.
        const last = answer.replace(EARLY_HINTS, '')
        if (last !== '') expect(last).toMatch(/^HTTP\/1\.1 (?:200|204|502|101) /)
        if (cut < 10) expect(answer).toMatch(/^HTTP\/1\.1 502 /)
      }
    }
  }, 60_000)
})

describe('a slow client', () => {
  it('that does not finish its headers in time gets 408', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    socket.on('error', () => {})
    let answer = ''
    socket.on('data', (chunk) => {
      answer += String(chunk)
    })
    const text = `GET / HTTP/1.1\r\nHost: ${host}\r\nX-A: ${'a'.repeat(1000)}`
    let at = 0
    const drip = setInterval(() => {
      if (socket.writable) socket.write(text[at++] ?? 'a')
    }, 20)
    await expect.poll(() => socket.closed).toBe(true)
    clearInterval(drip)
    expect(answer).toMatch(/^HTTP\/1\.1 408 .*too_slow/s)
  })

  it('that sends its body too slowly gets 408', async () => {
    const before = origin.seen.length
    const socket = connect(gateway.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    socket.on('error', () => {})
    let answer = ''
    socket.on('data', (chunk) => {
      answer += String(chunk)
    })
    socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100000\r\n\r\n`)
    await expect.poll(() => origin.seen.length).toBe(before + 1)
    // It sends enough at first and then too little.
    socket.write(Buffer.alloc(sessionLimits.uploadBytes))
    await pause(50)
    await gateway.later(sessionLimits.patienceMs.uploading)
    socket.write('a')
    await pause(50)
    expect(socket.closed).toBe(false)
    await gateway.later(sessionLimits.patienceMs.uploading)
    await expect.poll(() => socket.closed).toBe(true)
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  })

  it('that does not read its response is disconnected', async () => {
    const large = await startOrigin((_asked, response) => response.end(Buffer.alloc(64 * 1024 * 1024)))
    closers.push(() => large.close())
    const socket = connect(gateway.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    socket.on('error', () => {})
    socket.pause()
    socket.write(`GET / HTTP/1.1\r\nHost: ${gateway.expose(large.port)}\r\n\r\n`)
    await expect.poll(() => large.seen.length).toBe(1)
    await pause(100)
    expect(gateway.gateway.count().visits).toBe(1)
    // Once the transfer has stalled.
    const cut = async () => {
      await gateway.later(sessionLimits.patienceMs.stalled)
      return gateway.gateway.count()
    }
    await expect.poll(cut).toEqual({ connections: 0, visits: 0 })
  }, 15_000)

  it('that keeps sending a refused body is disconnected', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    socket.on('error', () => {})
    socket.resume()
    socket.write(
      `POST / HTTP/1.1\r\nHost: nobody-abcdefghij.berth.localhost\r\nContent-Length: 100000\r\n\r\na`,
    )
    await expect.poll(() => gateway.gateway.count().visits).toBe(1)
    await gateway.later(sessionLimits.patienceMs.leftover)
    await expect.poll(() => socket.closed).toBe(true)
  })

  it('with many idle connections is limited, and other clients are still served', async () => {
    const idle = Array.from({ length: 250 }, () => {
      const socket = connect({ port: gateway.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
      socket.on('error', () => {})
      closers.push(() => socket.destroy())
      return socket
    })
    await expect.poll(() => idle.filter((socket) => socket.closed).length).toBe(50)
    expect(gateway.gateway.count().connections).toBe(200)
    const other = await exchangeRaw(
      gateway.port,
      `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    )
    expect(other).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('over HTTP/2', () => {
  it.each(ends)(
    'a client that %s at any byte of its first frames does not affect others',
    async (_what, end) => {
      // A hand-written request, as in smuggling.test.ts: magic, settings, headers of `GET /large`.
      const text = (characters: string) => [characters.length, ...Buffer.from(characters, 'latin1')]
      const pairs = [':method', 'GET', ':scheme', 'https', ':authority', host, ':path', '/large']
      const block = pairs.flatMap((name, at) =>
        at % 2 === 0 ? [0, ...text(name), ...text(pairs[at + 1] ?? '')] : [],
      )
      const bytes = Buffer.concat([
        Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
        Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
        Buffer.from([0, 0, block.length, 1, 5, 0, 0, 0, 1, ...block]),
      ])
      for (let at = 0; at <= bytes.length; at += 20) {
        const cuts = Array.from({ length: 20 }, (_, more) => at + more)
        await Promise.all(
          cuts.map(async (cut) => {
            const socket = connectTls({
              host: '127.0.0.1',
              port: gateway.tlsPort,
              servername: host,
              ALPNProtocols: ['h2'],
              rejectUnauthorized: false,
            })
            socket.on('error', () => {})
            socket.resume()
            await new Promise((resolve) => socket.once('secureConnect', resolve))
            socket.write(bytes.subarray(0, cut))
            end(socket)
            await Promise.race([new Promise((resolve) => socket.once('close', resolve)), pause(100)])
            socket.destroy()
          }),
        )
      }
    },
    60_000,
  )
})
