// The request targets that clients send beside a plain path (RFC 9112, 3.2), over real connections.

import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  exchangeRaw,
  type Origin,
  startGateway,
  startOrigin,
  startRawOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'

let gateway: TestGateway
let origin: Origin
let host: string

beforeAll(async () => {
  gateway = await startGateway()
  origin = await startOrigin((request, response) => request.resume().once('end', () => response.end('ok')))
  host = gateway.expose(origin.port)
})
afterAll(async () => {
  await gateway.close()
  await origin.close()
})
beforeEach(() => {
  origin.seen.length = 0
})

/** What `curl $URL/café?q=ü` sends, a character for each byte, and how it is written in a URL. */
const CAFE = Buffer.from('/café?q=ü').toString('latin1')
const ENCODED = '/caf%C3%A9?q=%C3%BC'

describe('over HTTP/1.1 the unit receives', () => {
  const lines: [string, (line: { host: string }) => string, string][] = [
    ['a raw path in UTF-8 percent-encoded', () => `GET ${CAFE}`, `GET ${ENCODED}`],
    ['a raw path in Latin-1 percent-encoded', () => 'GET /caf\xe9', 'GET /caf%E9'],
    ['a raw path without what is encoded already encoded twice', () => 'GET /%C3%A9\xe9', 'GET /%C3%A9%E9'],
    ['OPTIONS * as it came', () => 'OPTIONS *', 'OPTIONS *'],
    ['the path of an absolute URL', ({ host: name }) => `GET http://${name}/a?b`, 'GET /a?b'],
    ['the path of an absolute https URL', ({ host: name }) => `GET https://${name}/a`, 'GET /a'],
    [
      'the path of an absolute URL in UTF-8',
      ({ host: name }) => `GET http://${name}${CAFE}`,
      `GET ${ENCODED}`,
    ],
    ['a slash for an absolute URL without a path', ({ host: name }) => `GET http://${name}`, 'GET /'],
    [
      'OPTIONS * for an absolute URL without a path',
      ({ host: name }) => `OPTIONS http://${name}`,
      'OPTIONS *',
    ],
  ]

  it.each(lines)('%s', async (_what, lineOf, seen) => {
    const answer = await exchangeRaw(gateway.port, `${lineOf({ host })} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(origin.seen).toEqual([seen])
  })

  it.each(lines)('%s, also with a body, which Node’s client sends', async (_what, lineOf, seen) => {
    const head = `${lineOf({ host })} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 3\r\n\r\nabc`
    expect(await exchangeRaw(gateway.port, head)).toMatch(/^HTTP\/1\.1 200 /)
    expect(origin.seen).toEqual([seen])
  })

  it('one Host header for an absolute URL, the one that both name', async () => {
    await exchangeRaw(gateway.port, `GET http://${host.toUpperCase()}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    const hosts = origin.heads.at(-1)?.filter((_text, at, head) => head[at - 1]?.toLowerCase() === 'host')
    expect(hosts?.map((name) => name.toLowerCase())).toEqual([host])
  })

  it('an absolute URL of HTTP/1.0, which needs no Host', async () => {
    await exchangeRaw(gateway.port, `GET http://${host}/a HTTP/1.0\r\n\r\n`)
    expect(origin.seen).toEqual(['GET /a'])
  })
})

describe('over HTTP/2 the unit receives', () => {
  let session: ClientHttp2Session
  beforeAll(() => {
    session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
      servername: host,
      rejectUnauthorized: false,
    })
  })
  afterAll(() => session.destroy())

  it.each([
    ['a raw path in UTF-8 percent-encoded', 'GET', CAFE, ENCODED],
    ['OPTIONS * as it came', 'OPTIONS', '*', '*'],
  ])('%s', async (_what, method, path, seen) => {
    const head = { ':method': method, ':path': path, ':authority': host }
    const stream = session.request(head, { endStream: true })
    const status = await new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'])))
    stream.resume()
    expect(status).toBe(200)
    expect(origin.seen).toEqual([`${method} ${seen}`])
  })
})

describe('a raw path in UTF-8', () => {
  const line = `GET ${CAFE} HTTP/1.1\r\n`

  it.each<[string, () => string[]]>([
    ['cut within its target', () => [line.slice(0, 12), `${line.slice(12)}Host: ${host}\r\n\r\n`]],
    ['cut within its headers', () => [`${line}Host: ${host}\r\nX-A`, ': b\r\n\r\n']],
    ['cut after its first raw byte', () => [line.slice(0, 9), line.slice(9), `Host: ${host}\r\n\r\n`]],
    ['on a connection that has served another request', () => [plainGet(), `${line}Host: ${host}\r\n\r\n`]],
  ])('is read from a request %s', async (_what, partsOf) => {
    const parts = partsOf()
    const got = await sendParts(parts)
    expect(got).toMatch(/HTTP\/1\.1 200 [^]*connection: close[^]*ok$/i)
    expect(origin.seen.at(-1)).toBe(`GET ${ENCODED}`)
  })

  it('is read over TLS', async () => {
    const socket = connectTls({
      host: '127.0.0.1',
      port: gateway.tlsPort,
      servername: host,
      rejectUnauthorized: false,
    })
    socket.write(`${line}Host: ${host}\r\n\r\n`, 'latin1')
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 200 /)
    expect(origin.seen).toEqual([`GET ${ENCODED}`])
  })

  it('can open a WebSocket, and the connection is left to it', async () => {
    const unit = await startRawOrigin((socket) =>
      socket.once('data', (head) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        socket.write(head.subarray(0, head.indexOf('\r')))
        socket.pipe(socket)
      }),
    )
    const name = gateway.expose(unit.port)
    const got = exchangeRaw(
      gateway.port,
      `${line}Host: ${name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nechoed`,
    )
    expect(await got).toMatch(
      new RegExp(`^HTTP/1\\.1 101 [^]*GET ${ENCODED.replace('?', '\\?')} HTTP/1\\.1echoed$`),
    )
    await unit.close()
  })

  it('whose response takes longer than a head may is answered', async () => {
    const patient = await startGateway({ headersMs: 300 })
    const slow = await startOrigin((_request, response) => setTimeout(() => response.end('ok'), 1500))
    const name = patient.expose(slow.port)
    const got = await exchangeRaw(patient.port, `${line}Host: ${name}\r\n\r\n`, 3000)
    expect(got).toMatch(/^HTTP\/1\.1 200 [^]*ok$/)
    await patient.close()
    await slow.close()
  })

  it('with a head that never ends is refused in the usual time', async () => {
    const patient = await startGateway({ headersMs: 300 })
    expect(await exchangeRaw(patient.port, `${line}Host: `, 3000)).toMatch(/^HTTP\/1\.1 408 /)
    expect(await exchangeRaw(patient.port, 'GET /\xe9', 3000)).toMatch(/^HTTP\/1\.1 408 /)
    expect(patient.gateway.count().connections).toBe(0)
    await patient.close()
  })

  it('that is too long is refused', async () => {
    const got = await exchangeRaw(gateway.port, `GET /${'\xe9'.repeat(40_000)}`)
    expect(got).toMatch(/^HTTP\/1\.1 431 /)
    expect(origin.seen).toEqual([])
  })
})

const plainGet = () => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`

/** Sends each part once the gateway had time to read the one before, and has answered it if it was a request. */
async function sendParts(parts: string[]): Promise<string> {
  const socket = connect(gateway.port, '127.0.0.1')
  const got = readAll(socket)
  for (const part of parts) {
    socket.write(part, 'latin1')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return await got
}

async function readAll(socket: Socket): Promise<string> {
  let got = ''
  for await (const chunk of socket) got += (chunk as Buffer).toString('latin1')
  return got
}
