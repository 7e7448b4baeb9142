// Requests that two servers could parse differently (reliability S17, L6, I27). Each is refused and its connection
// closed, or exactly one request reaches exactly the unit it names. Both units record what they receive.

import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  DOMAIN,
  exchangeRaw,
  type Origin,
  startGateway,
  startOrigin,
  type TestGateway,
} from '../../test/support/gateway.ts'

let gateway: TestGateway
let mine: Origin
let other: Origin
let host: string
let otherHost: string

beforeAll(async () => {
  gateway = await startGateway()
  const answer = (name: string) =>
    startOrigin((request, response) => {
      request.resume().once('end', () => response.end(name))
    })
  mine = await answer('mine')
  other = await answer('other')
  host = gateway.expose(mine.port)
  otherHost = gateway.expose(other.port)
})
afterAll(async () => {
  await gateway.close()
  await Promise.all([mine.close(), other.close()])
})
beforeEach(() => {
  mine.seen.length = 0
  mine.heads.length = 0
  other.seen.length = 0
})

const statusesOf = (answer: string) => [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
const smuggled = () => `GET /smuggled HTTP/1.1\r\nHost: ${otherHost}\r\n\r\n`
const post = (...headers: string[]) => `POST / HTTP/1.1\r\nHost: ${host}\r\n${headers.join('\r\n')}\r\n\r\n`
const get = (...headers: string[]) =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\n${headers.map((h) => `${h}\r\n`).join('')}\r\n`

describe('no unit receives a request with', () => {
  it.each<[string, () => string]>([
    [
      'a length and chunks',
      () => `${post('Content-Length: 6', 'Transfer-Encoding: chunked')}0\r\n\r\n${smuggled()}`,
    ],
    [
      'chunks and a length',
      () => `${post('Transfer-Encoding: chunked', 'Content-Length: 6')}0\r\n\r\n${smuggled()}`,
    ],
    ['two codings', () => `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity')}0\r\n\r\n`],
    ['the same coding twice', () => `${post('Transfer-Encoding: chunked, chunked')}0\r\n\r\n${smuggled()}`],
    ['an unknown coding', () => `${post('Transfer-Encoding: xchunked')}0\r\n\r\n${smuggled()}`],
    ['a coding before chunks', () => `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n`],
    ['a space before the colon', () => `${post('Transfer-Encoding : chunked')}0\r\n\r\n${smuggled()}`],
    ['a tab within a header’s name', () => `${post('Transfer\tEncoding: chunked')}0\r\n\r\n`],
    ['chunks in HTTP/1.0', () => post('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0')],
    ['two lengths', () => `${post('Content-Length: 0', 'Content-Length: 44')}${smuggled()}`],
    ['the same length twice', () => `${post('Content-Length: 3', 'Content-Length: 3')}abc`],
    ['a list of lengths', () => `${post('Content-Length: 3, 3')}abc`],
    ['a signed length', () => `${post('Content-Length: +3')}abc`],
    ['a hexadecimal length', () => `${post('Content-Length: 0x3')}abc`],
    ['a negative length', () => `${post('Content-Length: -1')}abc`],
    ['a huge length', () => `${post('Content-Length: 99999999999999999999999')}abc`],
    ['a folded header', () => get('X-A: b', ' Transfer-Encoding: chunked')],
    ['a space before its first header', () => `GET / HTTP/1.1\r\n Host: ${host}\r\n\r\n`],
    ['bare line feeds', () => `GET / HTTP/1.1\nHost: ${host}\n\n`],
    ['one bare line feed', () => get('X-A: b\nX-C: d')],
    ['a bare carriage return', () => get('X-A: b\rX-C: d')],
    ['a zero byte in a header', () => get('X-A: b\0c')],
    ['a control character in a header', () => get('X-A: b\x01c')],
    ['a header without a name', () => get(': x')],
    ['two hosts', () => get(`Host: ${otherHost}`)],
    ['the same host twice', () => get(`Host: ${host}`)],
    ['no host', () => 'GET / HTTP/1.1\r\n\r\n'],
    ['no host in HTTP/1.0', () => 'GET / HTTP/1.0\r\n\r\n'],
    ['a host with a user', () => `GET / HTTP/1.1\r\nHost: user@${host}\r\n\r\n`],
    ['a host with a path', () => `GET / HTTP/1.1\r\nHost: ${host}/x\r\n\r\n`],
    ['an absolute URL of another unit', () => `GET http://${otherHost}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    [
      'an absolute URL of another unit, and no HTTP/1.1',
      () => `GET http://${otherHost}/ HTTP/1.0\r\nHost: ${host}\r\n\r\n`,
    ],
    ['an absolute URL and no host', () => `GET http://${host}/ HTTP/1.1\r\n\r\n`],
    [
      'an absolute URL and two hosts',
      () => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nHost: ${otherHost}\r\n\r\n`,
    ],
    ['an absolute URL with a user', () => `GET http://user@${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    [
      'an absolute URL whose host ends at a backslash',
      () => `GET http://${host}\\@${otherHost}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    ],
    ['an absolute URL without a host', () => `GET http:///a HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a URL of another scheme', () => `GET ftp://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a path without a slash', () => `GET smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['an asterisk for a path', () => `GET * HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['an asterisk and more', () => `OPTIONS *a HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a space in its path', () => `GET /a b HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a control character in its path', () => `GET /a\x01b HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a non-ASCII byte for a slash', () => `GET \xe4 HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a deletion character in its path', () => `GET /a\x7fb HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['an unknown HTTP version', () => get().replace('HTTP/1.1', 'HTTP/1.2')],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['the method CONNECT', () => `CONNECT ${otherHost}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n${smuggled()}`],
    ['headers that are too large', () => get(`X-A: ${'a'.repeat(40_000)}`)],
    ['garbage instead of HTTP', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ])('%s', async (_what, bytes) => {
    const answer = await exchangeRaw(gateway.port, bytes())
    expect(mine.seen).toEqual([])
    expect(other.seen).toEqual([])
    // CONNECT and requests after a refused one get no response, only a closed connection.
    expect(statusesOf(answer).join()).toMatch(/^(?:400|431)?$/)
  })
})

describe('a malformed chunked body', () => {
  it.each<[string, string]>([
    ['a carriage return without a line feed', '0\r\n\rX'],
    ['bare line feeds', '3\nabc\n0\n\n'],
    ['a size with a prefix', '0x3\r\nabc\r\n0\r\n\r\n'],
    ['a size with a space', '3 \r\nabc\r\n0\r\n\r\n'],
    ['a huge size', '10000000000000003\r\nabc\r\n0\r\n\r\n'],
    ['a size that is not a number', 'xyz\r\nabc\r\n0\r\n\r\n'],
    ['a line feed in an extension', '3;a\nxx\r\nabc\r\n0\r\n\r\n'],
    ['a chunk that is longer than it says', '3\r\nabcdef\r\n0\r\n\r\n'],
  ])('does not smuggle a second request: %s', async (_what, body) => {
    const answer = await exchangeRaw(
      gateway.port,
      `${post('Transfer-Encoding: chunked')}${body}${smuggled()}`,
    )
    expect(other.seen).toEqual([])
    // The gateway may have forwarded its head, but never its end.
    expect(mine.seen.length).toBeLessThanOrEqual(1)
    expect(answer).not.toContain('mine')
  })
})

describe('exactly one unit receives exactly one request', () => {
  it.each<[string, () => string]>([
    ['with a coding after a tab', () => `${post('Transfer-Encoding:\tchunked')}0\r\n\r\n`],
    ['with an extension of a chunk', () => `${post('Transfer-Encoding: chunked')}3;a=b\r\nabc\r\n0\r\n\r\n`],
    [
      'that offers an upgrade to h2c',
      () =>
        get(
          'Connection: Upgrade, HTTP2-Settings',
          'Upgrade: h2c',
          'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
        ),
    ],
    [
      'with a body and an upgrade',
      () =>
        `${get('Connection: upgrade', 'Upgrade: websocket', `Content-Length: ${smuggled().length}`)}${smuggled()}`,
    ],
    [
      'with a body that looks like a request',
      () => `${post(`Content-Length: ${smuggled().length}`)}${smuggled()}`,
    ],
    [
      'that names another host in other headers',
      () => get(`X-Forwarded-Host: ${otherHost}`, `Forwarded: host=${otherHost}`, `X-Host: ${otherHost}`),
    ],
    ['with a trailing dot in its host', () => get().replace(host, `${host}.`)],
    ['with an upper-case host and a port', () => get().replace(host, `${host.toUpperCase()}:1234`)],
    ['after empty lines', () => `\r\n\r\n${get()}`],
    ['for an absolute URL', () => get().replace('GET /', `GET http://${host}/`)],
    [
      'for a non-ASCII path that looks like a request when its high bits are dropped',
      () => get().replace('GET /', `GET /\xa0HTTP/1.1\x8d\x8aHost:\xa0${otherHost}\x8d\x8a\x8d\x8a`),
    ],
  ])('%s', async (_what, bytes) => {
    const answer = await exchangeRaw(gateway.port, bytes())
    expect(statusesOf(answer)).toEqual(['200'])
    expect(mine.seen).toHaveLength(1)
    expect(other.seen).toEqual([])
  })
})

describe('a keep-alive connection', () => {
  it('routes each request to the unit it names', async () => {
    const requests = [host, otherHost, host, `nobody-abcdefghij.${DOMAIN}`, otherHost]
      .map((name, at) => `GET /${at} HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      .join('')
    const answer = await exchangeRaw(gateway.port, requests)
    expect(statusesOf(answer)).toEqual(['200', '200', '200', '404', '200'])
    expect(mine.seen).toEqual(['GET /0', 'GET /2'])
    expect(other.seen).toEqual(['GET /1', 'GET /4'])
  })

  it('is closed after a refused request', async () => {
    const answer = await exchangeRaw(gateway.port, `${get(`Host: ${otherHost}`)}${smuggled()}`)
    expect(statusesOf(answer)[0]).toBe('400')
    expect(answer).toMatch(/connection: close/i)
    expect(answer).not.toContain('other')
  })
})

describe('over TLS', () => {
  const tls = (serverName: string | undefined, alpn: string[]) =>
    connectTls({
      host: '127.0.0.1',
      port: gateway.tlsPort,
      ...(serverName === undefined ? {} : { servername: serverName }),
      ALPNProtocols: alpn,
      rejectUnauthorized: false,
    })

  async function ask(serverName: string | undefined, name: string): Promise<string> {
    const socket = tls(serverName, ['http/1.1'])
    socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    return answer
  }

  it('a connection for one unit gets 421 for requests to another', async () => {
    expect(statusesOf(await ask(host, otherHost))).toEqual(['421'])
    expect(statusesOf(await ask(host, 'example.com'))).toEqual(['421'])
    expect(statusesOf(await ask(host, host))).toEqual(['200'])
    expect(other.seen).toEqual([])
  })

  it('a connection without the name of a unit routes each request by its host', async () => {
    expect(statusesOf(await ask(undefined, otherHost))).toEqual(['200'])
    expect(statusesOf(await ask(DOMAIN, host))).toEqual(['200'])
  })

  describe('HTTP/2', () => {
    it.each<[string, number[]]>([
      ['with a line break in its path', [...authority(), ...field(':path', '/ HTTP/1.1\r\nHost: x')]],
      ['with a space in its path', [...authority(), ...field(':path', '/a b')]],
      ['with an upper-case header name', [...authority(), ...field(':path', '/'), ...field('X-A', 'c')]],
      [
        'with a transfer encoding',
        [...authority(), ...field(':path', '/'), ...field('transfer-encoding', 'chunked')],
      ],
      ['with a connection header', [...authority(), ...field(':path', '/'), ...field('connection', 'close')]],
      [
        'with a different host header',
        [...authority(), ...field(':path', '/'), ...field('host', 'x.berth.localhost')],
      ],
      ['with two paths', [...authority(), ...field(':path', '/'), ...field(':path', '/b')]],
      ['without a path', [...authority()]],
      ['with a malformed length', [...authority(), ...field(':path', '/'), ...field('content-length', '1 ')]],
      [
        'with a length that its body does not have',
        [...authority(), ...field(':path', '/'), ...field('content-length', '5')],
      ],
    ])('forwards no request %s', async (_what, fields) => {
      await askByFrames(fields)
      expect(mine.seen).toEqual([])
      expect(other.seen).toEqual([])
    })

    it('forwards neither a line break in a header nor the text after it', async () => {
      await askByFrames([...authority(), ...field(':path', '/'), ...field('x', 'a\r\nhost: b')])
      await askByFrames([...authority(), ...field(':path', '/'), ...field('a: b\r\nhost', 'c')])
      const names = mine.heads.map((head) => head.filter((_text, at) => at % 2 === 0))
      for (const head of names) expect(head.filter((name) => /host|^x$|^a/i.test(name))).toEqual(OURS)
    })

    it('forwards a valid request sent by the same hand-written frames', async () => {
      await askByFrames([...authority(), ...field(':path', '/fine')])
      expect(mine.seen).toEqual(['GET /fine'])
    })

    async function askByFrames(fields: number[]): Promise<void> {
      const socket = tls(host, ['h2'])
      socket.on('error', () => {})
      socket.resume()
      await new Promise((resolve) => socket.once('secureConnect', resolve))
      socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      socket.write(frame(SETTINGS, 0, 0, []))
      socket.write(frame(HEADERS, END_STREAM | END_HEADERS, 1, replaceAuthority(fields, host)))
      await new Promise((resolve) => setTimeout(resolve, 200))
      socket.destroy()
    }
  })
})

it('a client that speaks TLS to the plain HTTP port is disconnected', async () => {
  const socket = connectTls({ host: '127.0.0.1', port: gateway.port, rejectUnauthorized: false })
  await new Promise((resolve) => socket.once('error', resolve))
  const plain = connectTcp(gateway.port, '127.0.0.1')
  await new Promise((resolve) => plain.once('connect', resolve))
  plain.destroy()
  expect(mine.seen).toEqual([])
})

// HTTP/2 frames by hand, because a client library would refuse to send these. HPACK without tables or Huffman coding.

const [HEADERS, SETTINGS] = [1, 4]
const [END_STREAM, END_HEADERS] = [1, 4]
const AUTHORITY = 'AUTHORITY'
/** Headers set by the gateway whose names contain `host`. */
const OURS = ['host', 'x-forwarded-host']

function field(name: string, value: string): number[] {
  const text = (characters: string) => [characters.length, ...Buffer.from(characters, 'latin1')]
  return [0, ...text(name), ...text(value)]
}

function authority(): number[] {
  return [...field(':method', 'GET'), ...field(':scheme', 'https'), ...field(':authority', AUTHORITY)]
}

/** The host name is known only once the gateway is running. */
function replaceAuthority(block: number[], name: string): number[] {
  const marker = field(':authority', AUTHORITY)
  const at = Buffer.from(block).indexOf(Buffer.from(marker))
  return [...block.slice(0, at), ...field(':authority', name), ...block.slice(at + marker.length)]
}

function frame(type: number, flags: number, stream: number, payload: number[]): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, Buffer.from(payload)])
}
