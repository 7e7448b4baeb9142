// Connections to the hosts of secrets over real TLS, with a host of the test's own behind the door. Machines are told apart by
// their loopback address.

import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import {
  connect as connectHttp2,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
} from 'node:http2'
import { type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { type AddressInfo, connect as connectTcp, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { testDoor } from '../../../test/support/egress-door.ts'
import { makeKey, toPem } from '../../certificates/signed.ts'
import { authorityCertificate, hostCertificate } from '../../certificates/team-authority.ts'
import { DAY, systemClock } from '../../lib/clock.ts'
import type { KnownRules } from '../../lib/egress/link-client.ts'
import { parseAllowed } from '../../lib/egress/rules.ts'
import type { BrokeredSecret } from '../../lib/egress/secrets.ts'
import type { MachineSeen } from '../../lib/egress/seen.ts'
import type * as Dial from '../dial.ts'
import type { Door } from '../door.ts'
import { createTlsDoor } from '../tls-door.ts'
import { type Authorities, openAuthorities } from './authorities.ts'
import { createBroker } from './broker.ts'
import { upstreamContext } from './upstream.ts'

vi.mock('../dial.ts', async (original) => {
  const { dialName } = await original<typeof Dial>()
  const toHost: typeof dialName = async (_addresses, _port, gone, reads) =>
    await dialName(['127.0.0.1'], (host.address() as AddressInfo).port, gone, reads)
  return { dialName: toHost }
})

const ROOT = 'Test root'
const OWNER = '127.0.0.1'
const OTHER = '127.0.0.2'
const secret: BrokeredSecret = {
  name: 'KEY',
  placeholder: 'berth_secret_0123456789abcdef',
  value: 'sk-the-real-one',
  hosts: ['api.example.com'],
}

let host: Http2SecureServer
let door: Door
let server: ReturnType<typeof createTlsDoor>
let stateDir: string
let authorities: Authorities
let trusted: string
const hostSockets = new Set<TLSSocket>()
const rules = new Map<string, KnownRules>()
const noted: MachineSeen[] = []
const seen: { url: string; headers: Record<string, string | string[] | undefined>; body: string }[] = []

const rulesWith = (...secrets: BrokeredSecret[]): KnownRules => {
  const egress = { mode: 'listed' as const, allow: ['*.example.com'], siblings: 'none' as const }
  return { machine: 'unit_1', egress, entries: parseAllowed(egress.allow), team: 7, secrets }
}

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'authorities-'))
  authorities = await openAuthorities(stateDir, systemClock)
  trusted = await authorities.certificateOf(7)
  const [rootKey, key] = await Promise.all([makeKey(), makeKey()])
  const now = new Date()
  const roots = authorityCertificate(ROOT, { key: rootKey, now })
  const cert = hostCertificate('api.example.com', key, { name: ROOT, key: rootKey }, now)
  host = createSecureServer({ key: toPem(key), cert, allowHTTP1: true }, (request, response) => {
    if (request.url === '/stream') {
      ;(response as unknown as ServerResponse).flushHeaders()
      // The first piece says that there is a request, and is not answered.
      return void request.once('data', () => request.pipe(response))
    }
    const body: Buffer[] = []
    request.on('data', (chunk: Buffer) => body.push(chunk))
    request.on('end', () => {
      const { url, headers } = request
      const key = String(headers['x-key'] ?? '')
      if (url === '/status') return void request.socket.end(`HTTP/1.1 400 Bad ${key}\r\n${key}: 1\r\n\r\n`)
      if (url === '/odd') return void request.socket.end('HTTP/1.1 099 \u0001\r\nContent-Length: 0\r\n\r\n')
      seen.push({ url, headers, body: Buffer.concat(body).toString() })
      response.setHeader('x-from', 'host')
      response.setHeader('x-repeats', String(headers['x-key'] ?? ''))
      response.setHeader('trailer', 'x-status')
      response.addTrailers({ 'x-status': '0' })
      response.end(`hello ${String(headers['x-key'] ?? '')}`)
    })
  }).listen(0, '127.0.0.1')
  host.on('secureConnection', (socket: TLSSocket) => hostSockets.add(socket))
  host.on('upgrade', (request, socket) => {
    const key = String(request.headers['x-key'] ?? '')
    if (request.url === '/status') return void socket.end(`HTTP/1.1 400 Bad ${key}\r\n${key}: 1\r\n\r\n`)
    seen.push({ url: request.url ?? '', headers: request.headers, body: '' })
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.pipe(socket)
  })
  door = testDoor((address) => rules.get(address) ?? null, noted)
  const broker = createBroker(door, { authorities, trusted: upstreamContext(async () => roots) })
  server = createTlsDoor(door, broker).listen(0, '0.0.0.0')
  await Promise.all([once(host, 'listening'), once(server, 'listening')])
})
afterAll(async () => {
  for (const socket of hostSockets) socket.destroy()
  for (const each of [server, host]) each.close()
  await rm(stateDir, { recursive: true })
})
beforeEach(() => {
  seen.length = 0
  noted.length = 0
  rules.clear()
  rules.set(OWNER, rulesWith(secret))
})

type At = { machine?: string; name?: string; alpn?: string[] }

async function open({ machine = OWNER, name = 'api.example.com', alpn }: At = {}): Promise<TLSSocket> {
  const { port } = server.address() as AddressInfo
  const tcp = connectTcp({ port, host: '127.0.0.1', localAddress: machine })
  const socket = connect({
    socket: tcp,
    servername: name,
    ca: trusted,
    ...(alpn && { ALPNProtocols: alpn }),
  })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  return socket
}

async function askHttp2({ name = 'api.example.com' }: At, ...requests: Record<string, string>[]) {
  const socket = await open({ name, alpn: ['h2'] })
  expect(socket.alpnProtocol).toBe('h2')
  const session = connectHttp2(`https://${name}`, { createConnection: () => socket })
  const answers = requests.map(async (headers) => {
    const stream = session.request({ ':path': '/', ...headers })
    if (headers[':method'] === 'POST') stream.end(headers['x-body'])
    const said: Buffer[] = []
    let trailers: IncomingHttpHeaders = {}
    stream.on('trailers', (given: IncomingHttpHeaders) => (trailers = given))
    stream.on('data', (chunk: Buffer) => said.push(chunk))
    const [[answered]] = (await Promise.all([once(stream, 'response'), once(stream, 'close')])) as [
      [IncomingHttpHeaders],
      unknown,
    ]
    return { status: answered[':status'], body: Buffer.concat(said).toString(), trailers: { ...trailers } }
  })
  const all = await Promise.all(answers)
  session.destroy()
  return all
}

/** Sends text, and returns everything up to the end, or what has come when `until` has. */
async function say(socket: TLSSocket, text: string, until?: string): Promise<string> {
  let said = ''
  const done = Promise.withResolvers<void>()
  const take = (chunk: Buffer) => {
    said += chunk.toString('latin1')
    if (until !== undefined && said.includes(until)) done.resolve()
  }
  socket.on('data', take).once('close', done.resolve).once('end', done.resolve)
  socket.write(text)
  await done.promise
  socket.off('data', take)
  return said
}

const get = (...headers: string[]) =>
  ['GET / HTTP/1.1', 'Host: api.example.com', ...headers, 'Connection: close', '', ''].join('\r\n')
const ask = async (text: string, at?: At) => await say(await open(at), text)
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

describe('a request to the host of a secret', () => {
  test('carries the value where its headers have the placeholder, and no other header changes', async () => {
    const answer = await ask(get(`Authorization: Bearer ${secret.placeholder}`, 'X-Other: one'))
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*x-from: host[^]*hello/)
    expect(seen[0]?.headers).toMatchObject({
      authorization: `Bearer ${secret.value}`,
      'x-other': 'one',
      host: 'api.example.com',
    })
    await vi.waitFor(() => expect(noted.at(-1)?.bytesIn).toBeGreaterThan(0))
    expect(noted).toMatchObject([
      { machine: OWNER, host: 'api.example.com', port: 443, rule: '*.example.com', secret: 'KEY', count: 1 },
      { secret: 'KEY', count: 0 },
    ])
    expect(JSON.stringify(noted)).not.toContain(secret.value)
  })

  test('carries the value inside Basic as user or password', async () => {
    await ask(get(`Authorization: ${basic(`x-token:${secret.placeholder}`)}`))
    await ask(get(`Authorization: ${basic(`${secret.placeholder}:`)}`))
    await ask(get(`Authorization: ${basic('someone:else')}`))
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([
      basic(`x-token:${secret.value}`),
      basic(`${secret.value}:`),
      basic('someone:else'),
    ])
  })

  test('keeps a placeholder in its URL and in its body', async () => {
    const body = `key=${secret.placeholder}`
    const text = `POST /?k=${secret.placeholder} HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    await ask(text)
    expect(seen).toMatchObject([{ url: `/?k=${secret.placeholder}`, body }])
  })

  test('has a body of any kind, and its answer passes as it is', async () => {
    const chunked = get('Transfer-Encoding: chunked').replace('GET', 'POST')
    await ask(`${chunked}5\r\nhello\r\n0\r\n\r\n`)
    expect(seen[0]?.body).toBe('hello')
    expect(await ask(get(`X-Key: ${secret.placeholder}`))).toContain(`hello ${secret.value}`)
  })

  test('carries the value as it is now on a connection that stays open, and none once it is taken away', async () => {
    const socket = await open()
    const request = `GET / HTTP/1.1\r\nHost: api.example.com\r\nX-Key: ${secret.placeholder}\r\n\r\n`
    expect(await say(socket, request, 'hello sk')).toContain(secret.value)
    rules.set(OWNER, rulesWith({ ...secret, value: 'sk-rotated' }))
    expect(await say(socket, request, 'hello sk')).toContain('sk-rotated')
    rules.set(OWNER, rulesWith())
    expect(await say(socket, request)).toContain('403 Forbidden')
    expect(seen).toHaveLength(2)
  })

  test('is refused on a connection to another Host, and so is a target that names a host', async () => {
    const socket = await open()
    await say(socket, 'GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n', 'hello')
    expect(await say(socket, get().replace('api.example.com', 'www.example.com'))).toContain('421 ')
    expect(await ask(get().replace('GET /', 'GET https://www.example.com/'))).toContain('421 ')
    expect(await ask(get('Host: www.example.com'))).toMatch(/HTTP\/1\.1 4\d\d/)
    expect(seen).toHaveLength(1)
  })

  test('that a secret is not for is refused and noted, over either protocol', async () => {
    rules.set(OWNER, rulesWith({ ...secret, paths: ['/v1/*'] }))
    expect(await ask(get(`X-Key: ${secret.placeholder}`))).toContain('secret_refused')
    expect(await askHttp2({}, { 'x-key': secret.placeholder })).toMatchObject([{ status: 403 }])
    expect([seen, noted]).toMatchObject([[], [{ reason: 'secret_request' }, { secret: 'KEY' }]])
  })

  test('of another machine keeps the placeholder, and reaches no host but by its own rules', async () => {
    rules.set(OTHER, rulesWith({ ...secret, name: 'B', placeholder: 'berth_secret_of_another', value: 'b' }))
    await ask(get(`X-Key: ${secret.placeholder}`), { machine: OTHER })
    expect(seen[0]?.headers['x-key']).toBe(secret.placeholder)
  })

  test('ends with its connection where the host answers what no server may', async () => {
    expect(await ask(get().replace('GET /', 'GET /odd'))).toBe('')
    expect(await ask(get())).toContain('200 OK')
  })

  test('is answered without the value, wherever the host repeats it', async () => {
    rules.set(OWNER, rulesWith({ ...secret, value: 'sk-the-real-one-0123456789' }))
    const stars = '*'.repeat(26)
    const key = `X-Key: ${secret.placeholder}`
    expect(await ask(get(key, 'Accept-Encoding: gzip'))).toContain(`hello ${stars}`)
    expect(seen.at(-1)?.headers['accept-encoding']).toBe('identity')
    const credentials = Buffer.from('xyz:sk-the-real-one-0123456789').toString('base64')
    const said = await ask(get(`X-Key: ${basic(`xyz:${secret.placeholder}`)}`))
    // Its last character may come in a piece of its own.
    const asBasic = said.replaceAll(/(?<=\*)\r\n[0-9a-f]+\r\n(?=\*)/g, '')
    expect(asBasic).toContain(`hello Basic ${'*'.repeat(credentials.length)}`)
    expect(asBasic).toContain(`x-repeats: Basic ${'*'.repeat(credentials.length)}`)
    expect(seen.at(-1)?.headers['x-key']).toBe(`Basic ${credentials}`)
  })

  test('is answered without the value in the status and in the name of a header', async () => {
    rules.set(OWNER, rulesWith({ ...secret, value: 'sk-the-real-one-0123456789' }))
    const stars = '*'.repeat(26)
    const upgrade = ['Connection: upgrade', 'Upgrade: websocket']
    for (const more of [[], upgrade]) {
      const said = await ask(get(`X-Key: ${secret.placeholder}`, ...more).replace('GET /', 'GET /status'))
      expect(said).toContain(`400 Bad ${stars}`)
      expect(said).toContain(`${stars}: 1`)
    }
  })

  test('takes about as long with 32 secrets of 8,192 characters that programs escape as with one short one', async () => {
    const many = Array.from({ length: 32 }, (_, at) => ({
      ...secret,
      name: `KEY_${at}`,
      placeholder: `berth_secret_of_many_${at}_`,
      value: `${at}`.padEnd(8192, '"<&>/=+%'),
    }))
    const taken = { one: [] as number[], many: [] as number[] }
    for (let round = 0; round < 5; round += 1)
      for (const [kind, secrets] of [
        ['one', [secret]],
        ['many', many],
      ] as const) {
        rules.set(OWNER, rulesWith(...secrets))
        await ask(get())
        const since = performance.now()
        for (let each = 0; each < 3; each += 1) await ask(get())
        taken[kind].push(performance.now() - since)
      }
    const [one = 0, ofMany = 0] = [taken.one, taken.many].map((all) => all.toSorted((a, b) => a - b)[2])
    // Once, each request computed all forms of all values, which took a third of a second.
    expect(ofMany / one).toBeLessThan(8)
  })

  test('that would become too large is refused', async () => {
    rules.set(OWNER, rulesWith({ ...secret, value: 'v'.repeat(8192) }))
    const many = Array.from({ length: 20 }, () => secret.placeholder).join(' ')
    expect(await ask(get(`X-Key: ${many}`))).toContain('431 ')
    expect(seen).toEqual([])
  })

  test('that upgrades carries the value, and bytes then pass both ways', async () => {
    const socket = await open()
    const upgrade = `GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${secret.placeholder}\r\n\r\n`
    expect(await say(socket, upgrade, '\r\n\r\n')).toContain('101 Switching Protocols')
    expect(await say(socket, secret.placeholder, secret.placeholder)).toBe(secret.placeholder)
    expect(seen[0]?.headers.authorization).toBe(`Bearer ${secret.value}`)
    socket.destroy()
  })

  test('is answered by HTTP/1.1, also for a client that can more', async () => {
    const socket = await open({ alpn: ['h2', 'http/1.1'] })
    expect(socket.alpnProtocol).toBe('http/1.1')
    socket.destroy()
    await expect(open({ alpn: ['spdy/3'] })).rejects.toThrow()
  })
})

describe('a request by HTTP/2', () => {
  test('carries the value, its body and its trailers, as clients of gRPC send it', async () => {
    const path = `/?k=${secret.placeholder}`
    const post = {
      ':method': 'POST',
      ':path': path,
      'x-key': secret.placeholder,
      'x-body': secret.placeholder,
    }
    const [answer] = await askHttp2({}, { ...post, te: 'trailers' })
    expect(answer).toMatchObject({
      status: 200,
      body: `hello ${secret.value}`,
      trailers: { 'x-status': '0' },
    })
    const headers = { 'x-key': secret.value }
    expect(seen).toMatchObject([{ url: path, headers, body: secret.placeholder }])
  })

  test('is one of many on a connection, of which each is decided by its own authority', async () => {
    const [first, other, second] = await askHttp2(
      {},
      { 'x-key': secret.placeholder },
      { 'x-key': secret.placeholder, ':authority': 'www.example.com' },
      { 'x-key': secret.placeholder },
    )
    expect([first?.status, other?.status, second?.status]).toEqual([200, 421, 200])
    expect(other?.body).toContain('This connection is to api.example.com')
    expect(seen.map(({ headers }) => headers['x-key'])).toEqual([secret.value, secret.value])
  })

  test('is cut with its connection when its secret is taken away', async () => {
    const socket = await open({ alpn: ['h2'] })
    const session = connectHttp2('https://api.example.com', { createConnection: () => socket })
    session.on('error', () => {})
    const stream = session.request({ ':path': '/', 'x-key': secret.placeholder })
    stream.resume()
    await once(stream, 'close')
    const closed = once(session, 'close')
    door.open.sift(OWNER, ({ used }) => !used?.has(secret.placeholder))
    await closed
  })
})

describe('an answer that streams', () => {
  const long = { ...secret, value: 'sk-the-real-and-long-one' }
  const asked = { host: 'api.example.com', 'x-key': secret.placeholder }
  const over = (socket: TLSSocket) => ({ createConnection: () => socket, headers: asked })

  beforeEach(() => rules.set(OWNER, rulesWith(long)))

  /** Each piece is sent once the one before came back, and ends as the value begins. */
  async function talk(write: (text: string) => void, answer: Readable): Promise<void> {
    let [heard, expected] = ['', '']
    answer.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    for (const piece of ['data: 1 s', 'k-the', ' data: 2 sk-t', `data: ${long.value}.`]) {
      write(piece)
      expected += piece.replace(long.value, '*'.repeat(long.value.length))
      while (heard !== expected) await once(answer, 'data')
    }
  }

  test('has its head before its first piece is there', async () => {
    const socket = await open()
    const request = httpRequest({ ...over(socket), path: '/stream', method: 'POST' })
    request.write('-')
    await once(request, 'response')
    socket.destroy()
  })

  test('brings each piece before the next one is there, by HTTP/1.1', async () => {
    const socket = await open()
    const request = httpRequest({ ...over(socket), path: '/stream', method: 'POST' })
    request.write('begin')
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    await talk((text) => request.write(text), answer)
    socket.destroy()
  })

  test('brings each piece before the next one is there, by HTTP/2', async () => {
    const socket = await open({ alpn: ['h2'] })
    const session = connectHttp2('https://api.example.com', { createConnection: () => socket })
    const stream = session.request({ ':method': 'POST', ':path': '/stream', 'x-key': secret.placeholder })
    stream.write('begin')
    await once(stream, 'response')
    await talk((text) => stream.write(text), stream)
    session.destroy()
  })

  test('brings each piece before the next one is there, after an upgrade', async () => {
    const socket = await open()
    const upgrade = { connection: 'upgrade', upgrade: 'websocket' }
    const request = httpRequest({ ...over(socket), headers: { ...asked, ...upgrade } }).end()
    const [, upgraded] = (await once(request, 'upgrade')) as [IncomingMessage, Socket]
    await talk((text) => upgraded.write(text), upgraded)
    socket.destroy()
  })
})

describe('a connection by name', () => {
  test('to another host passes unread, with that host’s own certificate', async () => {
    rules.set(OWNER, rulesWith({ ...secret, hosts: ['other.example.com'] }))
    const opened = open()
    await expect(opened).rejects.toThrow(/unable to|self-signed|issuer/)
  })

  test('to a host whose certificate is another one’s sends nothing', async () => {
    rules.set(OWNER, rulesWith({ ...secret, hosts: ['wrong.example.com'] }))
    const request = get(`X-Key: ${secret.placeholder}`).replace('api.', 'wrong.')
    const answer = await ask(request, { name: 'wrong.example.com' })
    expect(answer).toMatch(/502 Bad Gateway[^]*host_unverified[^]*: it is for other names\./)
    const upgrade = request.replace('Connection: close', 'Connection: upgrade\r\nUpgrade: websocket')
    expect(await ask(upgrade, { name: 'wrong.example.com' })).toMatch(/502 Bad Gateway[^]*host_unverified/)
    const [byHttp2] = await askHttp2({ name: 'wrong.example.com' }, { 'x-key': secret.placeholder })
    expect(byHttp2).toMatchObject({ status: 502, body: expect.stringContaining('host_unverified') })
    const line = { host: 'wrong.example.com', decision: 'allowed', reason: 'unverified', secret: null }
    // The end of a connection of before may be noted meanwhile, which counts none.
    expect(noted.filter(({ count }) => count > 0)).toMatchObject([line, line, line])
    expect(seen).toEqual([])
  })

  test('is forgotten once it is closed, and cut by the process', async () => {
    const socket = await open()
    await say(socket, 'GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n', 'hello')
    expect(door.open.machines()).toEqual([OWNER])
    const closed = once(socket, 'close')
    door.open.sift(OWNER, () => false)
    await closed
    await vi.waitFor(() => expect(door.open.machines()).toEqual([]))
  })

  test('survives any bytes in place of requests', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 200 })
    const lines = fc.array(fc.oneof(text, fc.constantFrom('GET / HTTP/1.1', `X: ${secret.placeholder}`)))
    await fc.assert(
      fc.asyncProperty(lines, async (given) => {
        const socket = await open()
        socket.setTimeout(50, () => socket.destroy())
        await say(socket, `${given.join('\r\n')}\r\n\r\n`)
      }),
      { numRuns: 30 },
    )
    expect(await ask(get())).toContain('200 OK')
  })
})

describe('the authority of a team', () => {
  test('is kept where its process alone reads it, and stays the same after a restart', async () => {
    const again = await openAuthorities(stateDir, systemClock)
    expect(await again.certificateOf(7)).toBe(trusted)
    expect(await again.certificateOf(8)).not.toBe(trusted)
    const files = await readdir(join(stateDir, '7'))
    expect(files.toSorted()).toEqual(['ca.crt', 'ca.key'])
    for (const file of files) expect((await stat(join(stateDir, '7', file))).mode & 0o777).toBe(0o600)
    expect((await stat(join(stateDir, '7'))).mode & 0o777).toBe(0o700)
    expect(trusted).not.toContain(await readFile(join(stateDir, '7', 'ca.key'), 'utf8'))
  })

  test('signs certificates that began a day ago and end within a week', async () => {
    const socket = await open()
    const { validFromDate, validToDate } = new X509Certificate(socket.getPeerCertificate(true).raw)
    expect(Date.now() - validFromDate.getTime()).toBeGreaterThan(DAY - 5000)
    expect(validToDate.getTime() - Date.now()).toBeLessThan(7 * DAY)
    socket.destroy()
  })
})
