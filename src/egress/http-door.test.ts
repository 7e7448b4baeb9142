// Port 80 of restricted machines over real sockets, with a host of the test's own behind the door.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { testDoor } from '../../test/support/egress-door.ts'
import { parseAllowed } from '../lib/egress/rules.ts'
import { type MachineSeen, seenLine } from '../lib/egress/seen.ts'
import { createHttpDoor } from './http-door.ts'

vi.mock('./dial.ts', () => ({
  dialName: async () => {
    if (isAway) return null
    const socket = connect((host.address() as AddressInfo).port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  },
}))

let host: Server
let server: Server
/** Whether the host does not answer. */
let isAway = false
const seen: string[] = []
const noted: MachineSeen[] = []
const egress = { mode: 'listed' as const, allow: ['a.example.com'], siblings: 'none' as const }
const door = testDoor(
  () => ({ machine: 'unit_1', egress, entries: parseAllowed(egress.allow), team: 1, secrets: [] }),
  noted,
)

beforeAll(async () => {
  host = createServer((request, response) => {
    seen.push(`${request.method} ${request.headers.host} ${request.url}`)
    const body: Buffer[] = []
    request.on('data', (chunk: Buffer) => body.push(chunk))
    request.on('end', () => response.setHeader('x-from', 'host').end(`got ${Buffer.concat(body).toString()}`))
  }).listen(0, '127.0.0.1')
  host.on('upgrade', (request, socket) => {
    if (request.url === '/no') return void socket.end('HTTP/1.1 401 Unauthorized\r\nX-Why: none\r\n\r\nsorry')
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n')
    socket.pipe(socket)
  })
  server = createHttpDoor(door).listen(0, '127.0.0.1')
  await Promise.all([once(host, 'listening'), once(server, 'listening')])
})
afterAll(() => {
  for (const each of [server, host]) {
    each.closeAllConnections()
    each.close()
  }
})

describe('a request', () => {
  test('to a listed host is sent on with its body and its headers', async () => {
    const body =
      'POST /in?x=1 HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello'
    expect(await say(body)).toMatch(/200 OK[^]*x-from: host[^]*got hello/)
    expect(seen.at(-1)).toBe('POST a.example.com /in?x=1')
    await vi.waitFor(() => expect(noted.at(-1)?.bytesOut).toBeGreaterThan(50))
    const line = { host: 'a.example.com', port: 80, decision: 'allowed', rule: 'a.example.com' }
    expect(noted.slice(-2)).toMatchObject([
      { ...line, count: 1, bytesIn: 0 },
      { ...line, count: 0, bytesIn: expect.any(Number) },
    ])
  })

  test('in chunks arrives whole', async () => {
    const head =
      'POST / HTTP/1.1\r\nHost: a.example.com\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n'
    expect(await say(`${head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`)).toContain('got abcde')
  })

  test('that upgrades goes on as bytes', async () => {
    const head = 'GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n'
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.write(head)
    let said = ''
    socket.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await vi.waitFor(() => expect(said).toContain('101'))
    socket.write('over and out')
    await vi.waitFor(() => expect(said).toContain('over and out'))
    socket.destroy()
  })

  test.each([
    [
      'of the host, which does not upgrade',
      '/no',
      'a.example.com',
      /401 Unauthorized[^]*X-Why: none[^]*sorry/,
    ],
    ['of a sentence, which may not reach its host', '/', 'b.example.com', /403 Forbidden[^]*egress_refused/],
  ])('to upgrade has the answer %s', async (_what, path, name, answer) => {
    const head = `GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n`
    expect(await say(head)).toMatch(answer)
  })

  test('that offers HTTP/2 is answered by HTTP/1.1', async () => {
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n'
    const body = `POST / HTTP/1.1\r\nHost: a.example.com\r\n${offer}Content-Length: 5\r\n\r\nhello`
    expect(await say(body)).toMatch(/200 OK[^]*got hello/)
  })

  test('to a listed host that does not answer is told so, and not that it has no address', async () => {
    isAway = true
    const upgrade = 'Connection: upgrade\r\nUpgrade: echo\r\n'
    for (const more of ['Connection: close\r\n', upgrade])
      expect(await say(`GET / HTTP/1.1\r\nHost: a.example.com\r\n${more}\r\n`)).toMatch(
        /502 Bad Gateway[^]*"host_unreachable"[^]*a\.example\.com did not answer/,
      )
    isAway = false
  })

  test.each([
    ['another host', 'GET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n'],
    ['a host at another port', 'GET / HTTP/1.1\r\nHost: a.example.com:8080\r\n\r\n'],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: a.example.com\r\nHost: a.example.com\r\n\r\n'],
    ['a target that is not the host', 'GET http://b.example.com/ HTTP/1.1\r\nHost: a.example.com\r\n\r\n'],
    ['a tunnel', 'CONNECT a.example.com:443 HTTP/1.1\r\nHost: a.example.com\r\n\r\n'],
    [
      'one hidden behind two lengths',
      'POST / HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n',
    ],
    ['HTTP/2 from the start', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ])('to %s never reaches a host', async (_what, bytes) => {
    seen.length = 0
    noted.length = 0
    const said = await say(bytes)
    expect(said === '' || said.includes('egress_refused') || said.includes('400')).toBe(true)
    expect(seen).toEqual([])
    // The end of a connection of before may be noted meanwhile, which counts none.
    const begun = noted.filter(({ count }) => count > 0)
    expect(begun.filter(({ decision }) => decision === 'allowed')).toEqual([])
    if (said.includes('egress_refused')) expect(begun).toMatchObject([{ decision: 'refused', count: 1 }])
  })
})

test('whatever is sent, only requests for listed hosts reach one', async () => {
  seen.length = 0
  const piece = fc.constantFrom(
    'GET / HTTP/1.1\r\n',
    'Host: a.example.com\r\n',
    'Host: b.example.com\r\n',
    '\r\n',
    'X: y\r\n',
  )
  const bytes = fc.array(fc.oneof(piece, fc.string({ maxLength: 8 })), { maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(bytes, async (pieces) => {
      await say(pieces.join(''), 10)
    }),
    { numRuns: 200 },
  )
  expect(seen.filter((each) => !each.includes(' a.example.com '))).toEqual([])
  for (const { machine: _machine, ...line } of noted) seenLine.parse(line)
})

/** Sends bytes, and returns all that comes back until the other side closes, or this one after a while. */
async function say(bytes: string, endAfterMs = 1000): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let said = ''
  socket.on('error', () => {}).on('data', (chunk: Buffer) => (said += chunk.toString('latin1')))
  socket.write(bytes, 'latin1')
  const timer = setTimeout(() => socket.destroy(), endAfterMs)
  await once(socket, 'close')
  clearTimeout(timer)
  return said
}
