// How requests and responses pass through the gateway, over real connections.

import { createHash, randomBytes } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  type Answering,
  exchangeRaw,
  type Origin,
  startGateway,
  startOrigin,
  startRawOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'
import { isDeep } from '../../../test/support/part-of.ts'

let gateway: TestGateway
let origin: Origin
let host: string
/** How the unit responds; each test sets it. */
let answer: Answering
const closers: (() => unknown)[] = []

beforeAll(async () => {
  gateway = await startGateway()
  origin = await startOrigin((asked, response) => answer(asked, response))
  host = gateway.expose(origin.port)
})
afterAll(async () => {
  await gateway.close()
  await origin.close()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await expect.poll(() => gateway.gateway.count().visits).toBe(0)
})

type Got = { status: number; message: IncomingMessage; body: Buffer }

function ask(options: Record<string, unknown> = {}, body?: Buffer | Readable, to = host): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = begin(options, to)
    asked.on('error', reject)
    asked.on('response', (message) => {
      read(message).then(
        (bytes) => resolve({ status: message.statusCode ?? 0, message, body: bytes }),
        reject,
      )
    })
    if (body instanceof Readable) body.pipe(asked)
    else asked.end(body)
  })
}

function begin(options: Record<string, unknown> = {}, to = host): ClientRequest {
  const { headers, ...more } = options
  return request({
    host: '127.0.0.1',
    port: gateway.port,
    agent: false,
    ...more,
    headers: { host: to, ...(headers as object) },
  })
}

async function read(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('a request', () => {
  it('reaches the unit with its method, path, query, headers and body', async () => {
    const body = randomBytes(100_000)
    answer = async (asked, response) => response.end(sha256(await read(asked)))
    const got = await ask(
      { method: 'PATCH', path: '/a/%20b?c=d&e', headers: { 'x-mine': 'é'.normalize() } },
      body,
    )
    expect(got.body.toString()).toBe(sha256(body))
    expect(origin.seen.at(-1)).toBe('PATCH /a/%20b?c=d&e')
    expect(origin.heads.at(-1)).toContain('x-mine')
  })

  it('with a chunked body is forwarded chunked, with its trailers', async () => {
    let told: Record<string, unknown> = {}
    answer = async (asked, response) => {
      const bytes = await read(asked)
      told = { body: bytes.toString(), coding: asked.headers['transfer-encoding'], trailers: asked.trailers }
      response.end()
    }
    const asked = begin({ method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
    asked.write('abc')
    asked.addTrailers({ checksum: 'x', host: 'evil' })
    const answered = new Promise<IncomingMessage>((resolve) => asked.once('response', resolve))
    asked.end('def')
    await read(await answered)
    expect(told).toEqual({ body: 'abcdef', coding: 'chunked', trailers: { checksum: 'x' } })
  })

  it('is streamed to the unit before its body is complete', async () => {
    answer = (asked, response) => {
      asked.once('data', (chunk) => response.end(chunk))
    }
    const asked = begin({ method: 'POST' })
    asked.on('error', () => {})
    asked.write('first')
    const message = await new Promise<IncomingMessage>((resolve) => asked.once('response', resolve))
    expect((await read(message)).toString()).toBe('first')
    asked.destroy()
  })

  it('without a body has none at the unit', async () => {
    answer = (asked, response) => response.end(JSON.stringify(asked.headers))
    const { body } = await ask({ method: 'GET' })
    expect(Object.keys(JSON.parse(body.toString()))).not.toContain('transfer-encoding')
    const post = await ask({ method: 'POST', headers: { 'content-length': '0' } })
    expect(JSON.parse(post.body.toString())).toMatchObject({ 'content-length': '0' })
  })

  it('that the client aborts is aborted at the unit', async () => {
    const ended = new Promise((resolve) => {
      answer = (asked) => void asked.resume().once('close', () => resolve(asked.complete))
    })
    const asked = begin({ method: 'POST', headers: { 'content-length': '10' } })
    asked.on('error', () => {})
    asked.write('abc')
    await expect.poll(() => gateway.gateway.count().visits).toBe(1)
    await pause(50)
    asked.destroy()
    expect(await ended).toBe(false)
  })
})

describe('a client that sends Expect: 100-continue', () => {
  const headers = { expect: '100-continue', 'content-length': '3' }

  it('gets 100 Continue once the unit asks for the body', async () => {
    answer = async (asked, response) => response.end(`got ${(await read(asked)).toString()}`)
    const asked = begin({ method: 'PUT', headers })
    asked.once('continue', () => asked.end('abc'))
    asked.flushHeaders()
    const message = await new Promise<IncomingMessage>((resolve) => asked.once('response', resolve))
    expect((await read(message)).toString()).toBe('got abc')
  })

  it('gets the unit’s rejection before it sends the body', async () => {
    const raw = await startRawOrigin((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno'))
    })
    closers.push(() => raw.close())
    const to = gateway.expose(raw.port)
    const bytes = `PUT / HTTP/1.1\r\nHost: ${to}\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n`
    const got = await exchangeRaw(gateway.port, bytes)
    expect(got).toMatch(/^HTTP\/1.1 413/)
    expect(got).toMatch(/connection: close/i)
    expect(got).not.toContain('100 Continue')
  })

  it('gets a 404 from the gateway for an unknown host', async () => {
    const bytes = `PUT / HTTP/1.1\r\nHost: x.berth.localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n`
    const got = await exchangeRaw(gateway.port, bytes)
    expect(got).toMatch(/^HTTP\/1.1 404/)
    expect(got).toMatch(/connection: close/i)
  })
})

describe('a response', () => {
  it('is forwarded with its status, headers, body and trailers', async () => {
    answer = (_asked, response) => {
      response.writeHead(207, ['X-A', '1', 'X-A', '2', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'])
      response.write('body')
      response.addTrailers({ checksum: 'x', 'set-cookie': 'evil=1' })
      response.end()
    }
    const { status, message, body } = await ask()
    expect([status, body.toString()]).toEqual([207, 'body'])
    expect(message.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expect(message.headers['x-a']).toBe('1, 2')
    expect(message.trailers).toEqual({ checksum: 'x' })
  })

  it('to HEAD has a Content-Length and no body', async () => {
    answer = (_asked, response) => response.writeHead(200, { 'content-length': '12345' }).end()
    const { message, body } = await ask({ method: 'HEAD' })
    expect(message.headers['content-length']).toBe('12345')
    expect(body).toHaveLength(0)
  })

  it.each([204, 304])('with status %i has no body', async (status) => {
    answer = (_asked, response) => response.writeHead(status, { etag: '"a"' }).end()
    const got = await ask()
    expect([got.status, got.body.length, got.message.headers.etag]).toEqual([status, 0, '"a"'])
  })

  it('with partial content is forwarded with its Content-Range', async () => {
    answer = (asked, response) => {
      expect(asked.headers.range).toBe('bytes=2-4')
      response.writeHead(206, { 'content-range': 'bytes 2-4/10', 'content-length': '3' }).end('cde')
    }
    const got = await ask({ headers: { range: 'bytes=2-4' } })
    expect([got.status, got.body.toString()]).toEqual([206, 'cde'])
    expect(got.message.headers['content-range']).toBe('bytes 2-4/10')
  })

  it('is streamed as it is produced, headers first', async () => {
    let more: () => void = () => {}
    answer = (_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      more = () => response.write('data: 1\n\n')
      response.once('close', () => {
        more = () => {}
      })
    }
    const asked = begin()
    asked.on('error', () => {})
    asked.end()
    const message = await new Promise<IncomingMessage>((resolve) => asked.once('response', resolve))
    const chunk = new Promise((resolve) => message.once('data', (bytes) => resolve(String(bytes))))
    more()
    expect(await chunk).toBe('data: 1\n\n')
    message.destroy()
  })

  it('that breaks off is aborted for the client', async () => {
    answer = (_asked, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('abc')
      setTimeout(() => response.destroy(), 20)
    }
    await expect(ask()).rejects.toThrow('aborted')
    answer = (_asked, response) => {
      response.write('abc')
      setTimeout(() => response.destroy(), 20)
    }
    await expect(ask()).rejects.toThrow('aborted')
  })

  it('of HTTP/1.0 that ends when the connection closes is complete', async () => {
    const raw = await startRawOrigin((socket) => {
      socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\n\r\nold'))
    })
    closers.push(() => raw.close())
    expect((await ask({}, undefined, gateway.expose(raw.port))).body.toString()).toBe('old')
  })

  it('sent before the request is complete reaches a client that is still sending', async () => {
    answer = (_asked, response) => response.writeHead(413, { 'content-length': '2' }).end('no')
    const got = await ask(
      { method: 'POST', headers: { 'content-length': 3_000_000 } },
      randomBytes(3_000_000),
    )
    expect([got.status, got.body.toString()]).toEqual([413, 'no'])
  })

  it.each<[string, string]>([
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['has a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
    ['has a bare line feed in a header', 'HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: c\r\n\r\n'],
    ['has a zero byte in a header', 'HTTP/1.1 200 OK\r\nX-A: b\0c\r\n\r\n'],
    ['has no status', 'HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n'],
    ['switches protocols unasked', 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
    ['has headers of 100 kB', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`],
    ['ends within its head', 'HTTP/1.1 200 OK\r\nX-A: b'],
    ['is empty', ''],
  ])('that %s is replaced by 502 with bad_answer', async (_what, bytes) => {
    const raw = await startRawOrigin((socket) => {
      socket.once('data', () => socket.end(Buffer.from(bytes, 'latin1')))
    })
    closers.push(() => raw.close())
    const got = await ask({}, undefined, gateway.expose(raw.port))
    expect(got.status).toBe(502)
    expect(got.body.toString()).toContain('bad_answer')
  })
})

// Reliability L6: two gigabytes in the deep tier.
describe('large bodies', () => {
  const size = (isDeep ? 2048 : 32) * 1024 * 1024
  const chunk = randomBytes(64 * 1024)
  async function* bytes() {
    for (let sent = 0; sent < size; sent += chunk.length) yield chunk
  }
  const whole = createHash('sha256')
  for (let sent = 0; sent < size; sent += chunk.length) whole.update(chunk)
  const digest = whole.digest('hex')

  it('pass unchanged in both directions', async () => {
    answer = (asked, response) => void pipeline(asked, response).catch(() => {})
    const asked = begin({ method: 'POST', headers: { 'content-length': size } })
    const hash = createHash('sha256')
    asked.on('response', (message) => message.on('data', (part: Buffer) => hash.update(part)))
    const ended = new Promise((resolve) => asked.on('response', (message) => message.once('end', resolve)))
    await pipeline(Readable.from(bytes()), asked)
    await ended
    expect(hash.digest('hex')).toBe(digest)
  }, 600_000)

  it('are held back while the client does not read', async () => {
    let sent = 0
    answer = (asked, response) => {
      asked.resume()
      response.writeHead(200)
      const source = Readable.from(bytes())
      source.on('data', (part: Buffer) => {
        sent += part.length
      })
      pipeline(source, response).catch(() => {})
    }
    const socket = connect(gateway.port, '127.0.0.1')
    socket.pause()
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    await expect.poll(() => sent).toBeGreaterThan(0)
    for (let before = 0; before !== sent; await pause(300)) before = sent
    socket.destroy()
    expect(sent).toBeLessThan(16 * 1024 * 1024)
  })
})

describe('a keep-alive connection to a unit', () => {
  it('is reused for the same endpoint only', async () => {
    const connections = new Set<unknown>()
    answer = (asked, response) => {
      connections.add(asked.socket)
      response.end()
    }
    for (let at = 0; at < 5; at += 1) await ask()
    expect(connections.size).toBe(1)
    const alias = gateway.expose(origin.port)
    await ask({}, undefined, alias)
    expect(connections.size).toBe(2)
  })

  it('is never reused for a later run of the unit', async () => {
    const connections = new Set<unknown>()
    answer = (asked, response) => {
      connections.add(asked.socket)
      response.end()
    }
    const name = 'run-abcdefghij'
    const at = gateway.expose(origin.port, { name, unitId: 'unit_run' })
    await ask({}, undefined, at)
    gateway.expose(origin.port, { name, unitId: 'unit_run', generation: 2 })
    await ask({}, undefined, at)
    expect(connections.size).toBe(2)
  })

  it('that the unit closes early does not fail a request', async () => {
    let served = 0
    const raw = await startRawOrigin((socket) => {
      socket.on('data', () => {
        served += 1
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        // Close the connection just as the next request may arrive.
        socket.once('data', () => socket.resetAndDestroy())
      })
    })
    closers.push(() => raw.close())
    const to = gateway.expose(raw.port)
    for (let at = 0; at < 4; at += 1) expect((await ask({}, undefined, to)).status).toBe(200)
    expect(served).toBeGreaterThanOrEqual(4)
  })
})

describe('over HTTP/2', () => {
  const open = (): ClientHttp2Session => {
    const session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
      servername: host,
      rejectUnauthorized: false,
    })
    closers.push(() => session.destroy())
    return session
  }
  const headOf = (stream: ClientHttp2Stream) =>
    new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve))

  it('requests and responses carry the same content', async () => {
    answer = async (asked, response) => {
      const bytes = await read(asked)
      response.writeHead(201, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Connection', 'keep-alive'])
      response.write(`${asked.method} ${asked.url} ${asked.httpVersion} ${bytes.toString()}`)
      response.addTrailers({ checksum: 'x' })
      response.end()
    }
    const stream = open().request({
      ':method': 'POST',
      ':path': '/a?b',
      ':authority': host,
      cookie: ['c=1', 'd=2'],
    })
    const trailers = new Promise((resolve) => stream.once('trailers', resolve))
    const head = headOf(stream)
    stream.end('body')
    expect((await read(stream)).toString()).toBe('POST /a?b 1.1 body')
    expect(await head).toMatchObject({ ':status': 201, 'set-cookie': ['a=1', 'b=2'] })
    expect(await trailers).toMatchObject({ checksum: 'x' })
    expect(origin.heads.at(-1)).toContain('c=1; d=2')
    expect(origin.heads.at(-1)).toContain('https')
  })

  it('concurrent requests share a connection, and an aborted one does not affect the others', async () => {
    answer = (asked, response) => {
      if (asked.url === '/broken') {
        response.write('abc')
        setTimeout(() => response.destroy(), 10)
      } else setTimeout(() => response.end(asked.url), 50)
    }
    const session = open()
    const visits = Array.from({ length: 20 }, (_, at) => {
      const stream = session.request({ ':path': at === 7 ? '/broken' : `/${at}`, ':authority': host })
      stream.on('error', () => {})
      const closed = new Promise<number>((resolve) => stream.once('close', () => resolve(stream.rstCode)))
      return { body: read(stream).catch(() => null), closed }
    })
    const bodies = await Promise.all(visits.map((session) => session.body))
    bodies.forEach((body, at) => {
      if (at !== 7) expect(body?.toString()).toBe(`/${at}`)
    })
    expect(await visits[7]?.closed).not.toBe(0)
  })

  it('a request for another unit on the same connection gets 421', async () => {
    const alias = gateway.expose(origin.port)
    const stream = open().request({ ':path': '/', ':authority': alias })
    expect(await headOf(stream)).toMatchObject({ ':status': 421 })
    stream.close()
  })

  it('an early response reaches a client that is still sending', async () => {
    answer = (_asked, response) => response.writeHead(413).end('no')
    const stream = open().request({ ':method': 'POST', ':path': '/', ':authority': host })
    stream.on('error', () => {})
    const head = headOf(stream)
    stream.write(Buffer.alloc(100_000))
    expect(await head).toMatchObject({ ':status': 413 })
    expect((await read(stream)).toString()).toBe('no')
    stream.end()
  })
})
