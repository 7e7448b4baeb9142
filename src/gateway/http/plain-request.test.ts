// Requests that the gateway proxies without Node's HTTP client get what that client would have given them; and how
// their connections are kept.

import { get, type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startGateway, startRawOrigin, type TestGateway } from '../../../test/support/gateway.ts'

let gateway: TestGateway
const closers: (() => unknown)[] = []

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(async () => {
  await gateway.close()
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await expect.poll(() => gateway.gateway.count().visits).toBe(0)
})

type Got =
  | {
      status: number
      reason: string | undefined
      /** The status, `Link` and `Content-Length` of each response before the final one. */
      informed: unknown[][]
      body: string
      length: string | undefined
      trailers: object
      kept: string | undefined
    }
  | 'failed'

function ask(port: number, host: string, method = 'GET'): Promise<Got> {
  return new Promise((resolve) => {
    const informed: unknown[][] = []
    const asked = request(
      { host: '127.0.0.1', port, agent: false, headers: { host }, method },
      (answer: IncomingMessage) => {
        let body = ''
        answer.setEncoding('latin1').on('data', (chunk) => {
          body += chunk
        })
        answer.on('error', () => resolve('failed'))
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            reason: answer.statusMessage,
            informed,
            body,
            length: answer.headers['content-length'],
            trailers: answer.trailers,
            kept: answer.headers['x-kept'] as string | undefined,
          }),
        )
      },
    )
    asked.end()
    asked.on('information', ({ statusCode, headers }) => {
      // 100 Continue is only for those who asked for it.
      if (statusCode !== 100) informed.push([statusCode, headers.link, headers['content-length']])
    })
    asked.on('error', () => resolve('failed'))
    asked.on('upgrade', (_answer, socket) => {
      socket.destroy()
      resolve('failed')
    })
  })
}

/** A unit that answers each request with the next of these; the last one ends its connection if `ends`. */
async function unitThatSays(
  parts: string[],
  { ends }: { ends: boolean },
): Promise<{ port: number; host: string }> {
  const raw = await startRawOrigin((socket) => {
    socket.on('data', () => void write(socket))
  })
  async function write(socket: Socket): Promise<void> {
    for (const part of parts) {
      socket.write(Buffer.from(part, 'latin1'))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    if (ends) socket.end()
  }
  closers.push(() => raw.close())
  return { port: raw.port, host: gateway.expose(raw.port) }
}

const OK = 'HTTP/1.1 200 OK\r\nX-Kept: yes\r\n'
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`

describe.each(['GET', 'HEAD', 'OPTIONS'])('a visitor gets what Node’s client reads of %s', (method) => {
  it.each<[string, string[]]>([
    ['a length', [`${OK}Content-Length: 3\r\n\r\nabc`]],
    ['a length and a body in pieces', [`${OK}Content-Length: 6\r\n\r\n`, 'abc', 'def']],
    ['a length of zero', [`${OK}Content-Length: 0\r\n\r\n`]],
    ['a body that is longer than its length', [`${OK}Content-Length: 3\r\n\r\nabcdef`]],
    ['a body that is shorter than its length', [`${OK}Content-Length: 9\r\n\r\nabc`]],
    ['chunks', [`${CHUNKED}3\r\nabc\r\n0\r\n\r\n`]],
    ['chunks in pieces, with extensions', [CHUNKED, '3;a=b', '\r\nab', 'c\r', '\n0\r\n', '\r\n']],
    ['chunks with trailers', [`${CHUNKED}3\r\nabc\r\n0\r\nChecksum: x\r\n\r\n`]],
    ['chunks that break off', [`${CHUNKED}3\r\nabc\r\n`]],
    ['a malformed chunk', [CHUNKED, '3\r\nabc\r\n', 'xyz\r\n']],
    ['a head in two pieces', ['HTTP/1.1 200 OK\r\nX-Ke', 'pt: yes\r\nContent-Length: 3\r\n\r\nabc']],
    ['a head byte by byte', `${OK}Content-Length: 3\r\n\r\nabc`.split('')],
    [
      'early hints before it',
      [`HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n`, `${OK}Content-Length: 3\r\n\r\nabc`],
    ],
    ['early hints along with it', [`HTTP/1.1 103 Early\r\n\r\n${OK}Content-Length: 3\r\n\r\nabc`]],
    [
      'several responses before it',
      [
        'HTTP/1.1 102 Processing\r\n\r\n',
        'HTTP/1.1 103 Early\r\nLink: </\xe9>\r\nLink: </b>\r\n\r\nHTTP/1.1 199 Other\r\n\r\n',
        `${OK}Content-Length: 3\r\n\r\nabc`,
      ],
    ],
    [
      'a header with bytes above 127',
      ['HTTP/1.1 200 OK\r\nX-Kept: caf\xc3\xa9 \xe9\r\nContent-Length: 0\r\n\r\n'],
    ],
    ['a reason phrase of its own', ['HTTP/1.1 200 All  is\twell, \xc3\xa9\r\nContent-Length: 0\r\n\r\n']],
    ['an empty reason phrase', ['HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n']],
    ['a status of no standard', ['HTTP/1.1 599 Busy\r\nContent-Length: 0\r\n\r\n']],
    ['a status above 599', ['HTTP/1.1 799 Odd\r\nContent-Length: 0\r\n\r\n']],
    [
      '100 Continue that nobody asked for',
      [`HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 3\r\n\r\nabc`],
    ],
    ['a body that ends with the connection', [`${OK}\r\n`, 'abc']],
    ['HTTP/1.0 and a length', ['HTTP/1.0 200 OK\r\nX-Kept: yes\r\nContent-Length: 3\r\n\r\nabc']],
    ['a status without a reason', ['HTTP/1.1 200\r\nX-Kept: yes\r\nContent-Length: 3\r\n\r\nabc']],
    ['204 and a length', ['HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n']],
    ['304 and a length', ['HTTP/1.1 304 Not\r\nContent-Length: 3\r\n\r\n']],
    ['an offer to upgrade', [`${OK}Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 3\r\n\r\nabc`]],
    ['another coding before chunks', [`${OK}Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`]],
    ['a coding that is not chunks', [`${OK}Transfer-Encoding: identity\r\n\r\nabc`]],
    ['a folded header', [`${OK}X-A: b\r\n c\r\nContent-Length: 3\r\n\r\nabc`]],
    ['the same length twice', [`${OK}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`]],
    ['a length with a sign', [`${OK}Content-Length: +3\r\n\r\nabc`]],
    ['a space before a colon', [`${OK}Content-Length : 3\r\n\r\nabc`]],
    ['another version', ['HTTP/3.0 200 OK\r\nContent-Length: 3\r\n\r\nabc']],
    ['nothing', []],
  ])('of a response with %s', async (_what, parts) => {
    const unit = await unitThatSays(parts, { ends: true })
    const direct = await ask(unit.port, 'unit', method)
    const through = await ask(gateway.port, unit.host, method)
    // The gateway answers where the client fails before it has a head.
    const isReplaced = through !== 'failed' && through.status === 502
    expect(isReplaced ? 'failed' : through).toEqual(direct)
  })
})

describe('a kept connection', () => {
  it('serves later requests, also after a response in chunks', async () => {
    const raw = await startRawOrigin((socket) => {
      socket.on('data', () => socket.write(`${CHUNKED}3\r\nabc\r\n0\r\n\r\n`))
    })
    closers.push(() => raw.close())
    const host = gateway.expose(raw.port)
    for (let at = 0; at < 3; at += 1) expect(await ask(gateway.port, host)).toMatchObject({ body: 'abc' })
    expect(raw.connections).toHaveLength(1)
  })

  it.each<[string, string]>([
    ['the unit closes it', `${OK}Connection: close\r\nContent-Length: 3\r\n\r\nabc`],
    ['the unit speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc'],
  ])('serves no other request if %s', async (_what, bytes) => {
    const raw = await startRawOrigin((socket) => socket.on('data', () => socket.write(bytes)))
    closers.push(() => raw.close())
    const host = gateway.expose(raw.port)
    for (let at = 0; at < 2; at += 1) expect(await ask(gateway.port, host)).toMatchObject({ body: 'abc' })
    expect(raw.connections).toHaveLength(2)
  })

  it('on which the unit says something unasked is closed', async () => {
    const raw = await startRawOrigin((socket) => {
      socket.once('data', () => socket.write(`${OK}Content-Length: 3\r\n\r\nabc`))
    })
    closers.push(() => raw.close())
    const host = gateway.expose(raw.port)
    await ask(gateway.port, host)
    const [first] = raw.connections
    first?.write(`${OK}Content-Length: 4\r\n\r\nevil`)
    await expect.poll(() => first?.destroyed || first?.readableEnded).toBe(true)
    expect(await ask(gateway.port, host)).toMatchObject({ body: 'abc' })
    expect(raw.connections).toHaveLength(2)
  })

  it('is closed once it was idle for four seconds', async () => {
    const raw = await startRawOrigin((socket) => {
      socket.on('data', () => socket.write(`${OK}Content-Length: 3\r\n\r\nabc`))
    })
    closers.push(() => raw.close())
    await ask(gateway.port, gateway.expose(raw.port))
    await gateway.later(1000)
    expect(raw.connections[0]?.readableEnded).toBe(false)
    await gateway.later(5000)
    await expect.poll(() => raw.connections[0]?.readableEnded).toBe(true)
  })
})

describe('a unit that resets its connection', () => {
  it('while its visitor reads nothing ends that visit only', async () => {
    const raw = await startRawOrigin((socket) => {
      socket.once('data', () => {
        socket.write(`${OK}Connection: close\r\nContent-Length: 90000000\r\n\r\n`)
        const timer = setInterval(() => socket.write(Buffer.alloc(64 * 1024)), 1)
        setTimeout(() => {
          clearInterval(timer)
          socket.resetAndDestroy()
        }, 500)
      })
    })
    closers.push(() => raw.close())
    const host = gateway.expose(raw.port)
    const asked = get({ host: '127.0.0.1', port: gateway.port, agent: false, headers: { host } })
    const failed = new Promise((resolve) => {
      asked.on('error', resolve)
      asked.on('response', (answer) => {
        answer.on('error', resolve)
        setTimeout(() => answer.resume(), 800)
      })
    })
    await failed
    expect(gateway.gateway.count().visits).toBe(0)
  })
})
