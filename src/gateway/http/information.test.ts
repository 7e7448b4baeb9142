// Informational responses of a unit, and its reason phrase, on their way to the visitor.

import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startGateway, startRawOrigin, type TestGateway } from '../../../test/support/gateway.ts'

let gateway: TestGateway
const closers: (() => unknown)[] = []

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await expect.poll(() => gateway.gateway.count().visits).toBe(0)
})

const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.js>\r\nX-A: caf\xe9\r\n'
const FINAL = 'HTTP/1.1 200 Fine by me\r\nContent-Length: 2\r\n\r\nok'

/** A unit that says this to each request, and its host name. `say` writes more on its last connection. */
async function unitThatSays(first: string, { secret }: { secret?: string } = {}) {
  const sockets: Socket[] = []
  const raw = await startRawOrigin((socket) => {
    sockets.push(socket)
    socket.on('data', () => socket.write(first, 'latin1'))
  })
  closers.push(() => raw.close())
  return {
    host: gateway.expose(raw.port, secret === undefined ? {} : { secret }),
    say: (text: string) => sockets.at(-1)?.write(text, 'latin1'),
  }
}

/** Sends a request; `until` resolves with all bytes that came once they contain the text. */
function visitor(head: string): { until: (text: string) => Promise<string>; send: (text: string) => void } {
  const socket = connect(gateway.port, '127.0.0.1')
  closers.push(() => socket.destroy())
  socket.write(head, 'latin1')
  let got = ''
  socket.on('data', (chunk) => {
    got += chunk.toString('latin1')
    socket.emit('got')
  })
  const until = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        if (got.includes(text)) resolve(got)
      }
      socket.on('got', look)
      socket.on('close', () => reject(new Error(`closed after ${got}`)))
      look()
    })
  return { until, send: (text) => socket.write(text) }
}

const get = (host: string, version = '1.1') => `GET / HTTP/${version}\r\nHost: ${host}\r\n\r\n`
const upload = (host: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 3\r\n\r\nabc`
const webSocket = (host: string) =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'

describe('a visitor by HTTP/1.1', () => {
  it.each([
    ['a plain request', get],
    ['a request with a body', upload],
    ['a request for a WebSocket', webSocket],
  ])(
    'gets the early hints of the unit before the response, with all their headers: %s',
    async (_what, requestOf) => {
      const unit = await unitThatSays(`${HINTS}\r\n`)
      const { until } = visitor(requestOf(unit.host))
      // The final response is not there yet.
      expect(await until('\r\n\r\n')).toBe(`${HINTS}\r\n`)
      unit.say(FINAL)
      expect(await until('ok')).toMatch(/\r\n\r\nHTTP\/1\.1 200 Fine by me\r\n/)
    },
  )

  it('gets each of several, also of a status that no standard knows', async () => {
    const unit = await unitThatSays(
      `HTTP/1.1 102 X\r\n\r\n${HINTS}\r\nHTTP/1.1 199 Y\r\nX-B: c\r\n\r\n${FINAL}`,
    )
    const got = await visitor(get(unit.host)).until('ok')
    expect([...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual([
      '102',
      '103',
      '199',
      '200',
    ])
    expect(got).toContain('X-B: c')
  })

  it('gets none of their lengths, cookies of other hosts or connection headers', async () => {
    const unsafe =
      'Content-Length: 90\r\nKeep-Alive: timeout=1\r\nSet-Cookie: a=b; Domain=berth.localhost\r\nAlt-Svc: x\r\n'
    const unit = await unitThatSays(`${HINTS}${unsafe}\r\n${FINAL}`)
    const got = await visitor(get(unit.host)).until('ok')
    expect(got.startsWith(`${HINTS}\r\nHTTP/1.1 200`)).toBe(true)
  })

  it('gets those of a private URL with a referrer policy that keeps its secret', async () => {
    const unit = await unitThatSays(`${HINTS}\r\n${FINAL}`, { secret: 'a'.repeat(26) })
    const got = await visitor(get(unit.host)).until('ok')
    expect(got.slice(0, got.indexOf('\r\n\r\n'))).toMatch(
      /^HTTP\/1\.1 103 [\s\S]*referrer-policy: same-origin/i,
    )
  })

  it('gets no 100 Continue that it did not ask for', async () => {
    const unit = await unitThatSays(`HTTP/1.1 100 Continue\r\n\r\n${FINAL}`)
    expect(await visitor(upload(unit.host)).until('ok')).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('gets no more of them than fit one head, and then the response', async () => {
    const one = `HTTP/1.1 103 Early Hints\r\nLink: <${'a'.repeat(10_000)}>\r\n\r\n`
    const unit = await unitThatSays(`${one.repeat(20)}${'HTTP/1.1 102 X\r\n\r\n'.repeat(100)}${FINAL}`)
    const got = await visitor(get(unit.host)).until('ok')
    expect([...got.matchAll(/HTTP\/1\.1 103/g)]).toHaveLength(6)
    expect(got).toContain('HTTP/1.1 200')
  })

  it('gets those of two requests sent at once each before its own response', async () => {
    const unit = await unitThatSays(`${HINTS}\r\n${FINAL}`)
    const { until } = visitor(get(unit.host) + get(unit.host))
    const got = await until('ok').then(() => until('ok'))
    const all = got.match(/HTTP\/1\.1 200/g)?.length === 2 ? got : await until(`ok${HINTS}`)
    expect(all.startsWith(HINTS)).toBe(true)
  })

  it.each([
    ['of its own', 'Fine by me'],
    ['in bytes above 127', 'C\xc3\xa9 \xe9'],
    ['that is empty', ''],
  ])('gets a reason phrase %s', async (_what, reason) => {
    const unit = await unitThatSays(`HTTP/1.1 404 ${reason}\r\nContent-Length: 2\r\n\r\nok`)
    for (const requestOf of [get, upload])
      expect(await visitor(requestOf(unit.host)).until('ok')).toMatch(
        new RegExp(`^HTTP/1\\.1 404 ${reason}\\r\\n`),
      )
  })
})

it('a visitor by HTTP/1.0 gets the final response only', async () => {
  const unit = await unitThatSays(`${HINTS}\r\n${FINAL}`)
  const got = await visitor(get(unit.host, '1.0')).until('ok')
  expect(got).toMatch(/^HTTP\/1\.1 200 Fine by me\r\n/)
})

it('a visitor by HTTP/2 gets the early hints of the unit before the response', async () => {
  const unit = await unitThatSays(`${HINTS}\r\n`)
  const session = connectHttp2(`https://127.0.0.1:${gateway.tlsPort}`, {
    servername: unit.host,
    rejectUnauthorized: false,
  })
  closers.push(() => session.destroy())
  const stream = session.request({ ':path': '/', ':authority': unit.host })
  const response = new Promise<IncomingHttpHeaders>((resolve) => stream.once('response', resolve))
  const hints = await new Promise<IncomingHttpHeaders>((resolve) => stream.once('headers', resolve))
  expect(hints).toMatchObject({ ':status': 103, link: '</a.css>; rel=preload, </b.js>', 'x-a': 'caf\xe9' })
  unit.say(FINAL)
  expect(await response).toMatchObject({ ':status': 200, 'content-length': '2' })
  stream.close()
})
