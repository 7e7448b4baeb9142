// Requests two servers could read differently (reliability S17). Each ends in a refusal and a closed connection, or
// exactly one request reaches exactly the unit that was named. Both units count what reaches them.

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

describe('no unit sees', () => {
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
    ['a blank before the colon', () => `${post('Transfer-Encoding : chunked')}0\r\n\r\n${smuggled()}`],
    ['a tab within a header’s name', () => `${post('Transfer\tEncoding: chunked')}0\r\n\r\n`],
    ['chunks in HTTP/1.0', () => post('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0')],
    ['two lengths', () => `${post('Content-Length: 0', 'Content-Length: 44')}${smuggled()}`],
    ['the same length twice', () => `${post('Content-Length: 3', 'Content-Length: 3')}abc`],
    ['a list of lengths', () => `${post('Content-Length: 3, 3')}abc`],
    ['a length with a sign', () => `${post('Content-Length: +3')}abc`],
    ['a length that is hexadecimal', () => `${post('Content-Length: 0x3')}abc`],
    ['a length below nothing', () => `${post('Content-Length: -1')}abc`],
    ['a length beyond all bounds', () => `${post('Content-Length: 99999999999999999999999')}abc`],
    ['a folded header', () => get('X-A: b', ' Transfer-Encoding: chunked')],
    ['a header that begins with a blank', () => `GET / HTTP/1.1\r\n Host: ${host}\r\n\r\n`],
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
    ['a whole URL of another unit', () => `GET http://${otherHost}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a whole URL of its own', () => `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a path that is none', () => `GET smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['the asterisk', () => `OPTIONS * HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a path with a blank', () => `GET /a b HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a path with a control character', () => `GET /a\x01b HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a path beyond ASCII', () => `GET /\xe4 HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
    ['a version there is not', () => get().replace('HTTP/1.1', 'HTTP/1.2')],
    ['HTTP/2 without a greeting', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['CONNECT', () => `CONNECT ${otherHost}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n${smuggled()}`],
    ['headers beyond the bound', () => get(`X-A: ${'a'.repeat(40_000)}`)],
    ['garbage', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ])('%s', async (_what, bytes) => {
    const answer = await exchangeRaw(gateway.port, bytes())
    expect(mine.seen).toEqual([])
    expect(other.seen).toEqual([])
    // CONNECT and requests after a refused one are met with silence and the end.
    expect(statusesOf(answer).join()).toMatch(/^(?:400|431)?$/)
  })
})

describe('a body that breaks off in a way of its own', () => {
  it.each<[string, string]>([
    ['a carriage return without a line feed', '0\r\n\rX'],
    ['bare line feeds', '3\nabc\n0\n\n'],
    ['a size with a prefix', '0x3\r\nabc\r\n0\r\n\r\n'],
    ['a size with a blank', '3 \r\nabc\r\n0\r\n\r\n'],
    ['a size beyond all bounds', '10000000000000003\r\nabc\r\n0\r\n\r\n'],
    ['a size that is none', 'xyz\r\nabc\r\n0\r\n\r\n'],
    ['a line feed in an extension', '3;a\nxx\r\nabc\r\n0\r\n\r\n'],
    ['a chunk that is longer than it says', '3\r\nabcdef\r\n0\r\n\r\n'],
  ])('is no way to another request: %s', async (_what, body) => {
    const answer = await exchangeRaw(
      gateway.port,
      `${post('Transfer-Encoding: chunked')}${body}${smuggled()}`,
    )
    expect(other.seen).toEqual([])
    // The head of it may have been passed on, its end never.
    expect(mine.seen.length).toBeLessThanOrEqual(1)
    expect(answer).not.toContain('mine')
  })
})

describe('exactly one unit sees exactly one request', () => {
  it.each<[string, () => string]>([
    ['with a coding after a tab', () => `${post('Transfer-Encoding:\tchunked')}0\r\n\r\n`],
    ['with an extension of a chunk', () => `${post('Transfer-Encoding: chunked')}3;a=b\r\nabc\r\n0\r\n\r\n`],
    [
      'that would rather speak HTTP/2',
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
      'that names another host everywhere else',
      () => get(`X-Forwarded-Host: ${otherHost}`, `Forwarded: host=${otherHost}`, `X-Host: ${otherHost}`),
    ],
    ['whose host ends with a dot', () => get().replace(host, `${host}.`)],
    ['whose host is in capitals, with a port', () => get().replace(host, `${host.toUpperCase()}:1234`)],
    ['after empty lines', () => `\r\n\r\n${get()}`],
  ])('%s', async (_what, bytes) => {
    const answer = await exchangeRaw(gateway.port, bytes())
    expect(statusesOf(answer)).toEqual(['200'])
    expect(mine.seen).toHaveLength(1)
    expect(other.seen).toEqual([])
  })
})

describe('a kept connection', () => {
  it('leads each request to the unit it names', async () => {
    const requests = [host, otherHost, host, `nobody-abcdefghij.${DOMAIN}`, otherHost]
      .map((name, at) => `GET /${at} HTTP/1.1\r\nHost: ${name}\r\n\r\n`)
      .join('')
    const answer = await exchangeRaw(gateway.port, requests)
    expect(statusesOf(answer)).toEqual(['200', '200', '200', '404', '200'])
    expect(mine.seen).toEqual(['GET /0', 'GET /2'])
    expect(other.seen).toEqual(['GET /1', 'GET /4'])
  })

  it('ends with a request that is refused', async () => {
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

  it('a connection for one unit is for no other', async () => {
    expect(statusesOf(await ask(host, otherHost))).toEqual(['421'])
    expect(statusesOf(await ask(host, 'example.com'))).toEqual(['421'])
    expect(statusesOf(await ask(host, host))).toEqual(['200'])
    expect(other.seen).toEqual([])
  })

  it('a connection that names no unit is led by each request', async () => {
    expect(statusesOf(await ask(undefined, otherHost))).toEqual(['200'])
    expect(statusesOf(await ask(DOMAIN, host))).toEqual(['200'])
  })

  describe('HTTP/2', () => {
    it.each<[string, number[]]>([
      ['a line break in a path', [...authority(), ...field(':path', '/ HTTP/1.1\r\nHost: x')]],
      ['a blank in a path', [...authority(), ...field(':path', '/a b')]],
      ['a capital in a name', [...authority(), ...field(':path', '/'), ...field('X-A', 'c')]],
      ['a coding', [...authority(), ...field(':path', '/'), ...field('transfer-encoding', 'chunked')]],
      ['a connection header', [...authority(), ...field(':path', '/'), ...field('connection', 'close')]],
      ['another host', [...authority(), ...field(':path', '/'), ...field('host', 'x.berth.localhost')]],
      ['two paths', [...authority(), ...field(':path', '/'), ...field(':path', '/b')]],
      ['no path', [...authority()]],
      ['a length that is none', [...authority(), ...field(':path', '/'), ...field('content-length', '1 ')]],
      [
        'a length its body has not',
        [...authority(), ...field(':path', '/'), ...field('content-length', '5')],
      ],
    ])('brings no unit %s', async (_what, fields) => {
      await askByFrames(fields)
      expect(mine.seen).toEqual([])
      expect(other.seen).toEqual([])
    })

    it('brings no unit a line break in a header, nor what stands behind it', async () => {
      await askByFrames([...authority(), ...field(':path', '/'), ...field('x', 'a\r\nhost: b')])
      await askByFrames([...authority(), ...field(':path', '/'), ...field('a: b\r\nhost', 'c')])
      const names = mine.heads.map((head) => head.filter((_text, at) => at % 2 === 0))
      for (const head of names) expect(head.filter((name) => /host|^x$|^a/i.test(name))).toEqual(OURS)
    })

    it('brings the unit a request that is as it should be, told by these very bytes', async () => {
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

it('a visitor that speaks TLS to the port without it is turned away', async () => {
  const socket = connectTls({ host: '127.0.0.1', port: gateway.port, rejectUnauthorized: false })
  await new Promise((resolve) => socket.once('error', resolve))
  const plain = connectTcp(gateway.port, '127.0.0.1')
  await new Promise((resolve) => plain.once('connect', resolve))
  plain.destroy()
  expect(mine.seen).toEqual([])
})

// HTTP/2 by hand: a client library would refuse to say such things. HPACK without tables or Huffman.

const [HEADERS, SETTINGS] = [1, 4]
const [END_STREAM, END_HEADERS] = [1, 4]
const AUTHORITY = 'AUTHORITY'
/** Headers of the gateway that have `host` in their names. */
const OURS = ['host', 'x-forwarded-host']

function field(name: string, value: string): number[] {
  const text = (characters: string) => [characters.length, ...Buffer.from(characters, 'latin1')]
  return [0, ...text(name), ...text(value)]
}

function authority(): number[] {
  return [...field(':method', 'GET'), ...field(':scheme', 'https'), ...field(':authority', AUTHORITY)]
}

/** The name is known only once the gateway runs. */
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
