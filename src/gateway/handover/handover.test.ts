// Visits that come to the gateway of another host than their unit's: gateways as they are, joined by TLS, with servers that
// stand for units.

import { type EventEmitter, once } from 'node:events'
import { createHash } from 'node:crypto'
import { Agent, createServer as createHttpServer, request as requestHttp } from 'node:http'
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import { Agent as TlsAgent, request as requestHttps } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type Origin,
  type RawOrigin,
  startOrigin,
  startRawOrigin,
  VISITOR,
} from '../../../test/support/gateway.ts'
import { type HostGateway, type HostGateways, startHosts } from '../../../test/support/handover.ts'
import { cancelOf, keyed, READY, SSL_REQUEST, STARTUP } from '../../../test/support/postgres-messages.ts'
import { portNameOf } from '../../contract/port-host.ts'
import { freePort } from '../../lib/free-port.ts'
import { silentLog } from '../../lib/log.ts'
import { errorMessageOf } from '../sessions/outcomes.ts'

import { listenForCallers, reachPort } from './callers.ts'

const HOST = '127.0.0.1'
const KEY = Buffer.from('0000002a11223344', 'hex')
const PING = '*1\r\n$4\r\nPING\r\n'

let all: HostGateways
let near: HostGateway
let far: HostGateway
let origin: Origin
let raw: RawOrigin[]
let clients: (Socket | ClientHttp2Session | Agent)[]

beforeEach(async () => {
  all = await startHosts('near', 'far')
  const [one, other] = all.hosts
  if (!one || !other) throw new Error('there are two')
  near = one
  far = other
  origin = await startOrigin((request, response) => response.end(`${request.url} of the unit`))
  raw = []
  clients = []
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await all.close()
  await origin.close()
  await Promise.all(raw.map((each) => each.close()))
})

const noted = <T extends Socket | ClientHttp2Session | Agent>(client: T): T => {
  clients.push(client)
  ;(client as EventEmitter).on('error', () => {})
  return client
}

async function serve(onConnection: (unit: Socket) => void): Promise<number> {
  const made = await startRawOrigin(onConnection)
  raw.push(made)
  return made.port
}

describe('a call that the server has let in', () => {
  it('reaches the port of a unit of another host', async () => {
    const at = { unitId: `unit_${'a'.repeat(32)}`, port: origin.port }
    far.expose(origin.port, { name: portNameOf(at), unitId: at.unitId })
    const socketPath = join(tmpdir(), `berth-callers-${process.pid}`)
    const log = silentLog
    const callers = await listenForCallers(near.gateway.gateway, {
      socketPath,
      gid: process.getgid?.() ?? 0,
      log,
    })
    const connection = await reachPort(socketPath, { ...at, address: '203.0.113.7', isSecure: true })
    const asked = requestHttp({
      createConnection: () => connection,
      path: '/x',
      headers: { host: 'localhost' },
    })
    expect(await answerTo(asked)).toEqual({ status: 200, text: '/x of the unit' })
    expect(origin.heads[0]).toEqual(expect.arrayContaining(['203.0.113.7', 'https']))
    await callers.close()
  })
})

type Answer = { status: number; text: string }

async function answerTo(asked: ReturnType<typeof requestHttp>): Promise<Answer> {
  asked.end()
  const [response] = await once(asked, 'response')
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, text }
}

const visitByTls = async (at: HostGateway, host: string, agent = new TlsAgent(), path = '/') =>
  await answerTo(
    requestHttps({
      host: HOST,
      port: at.gateway.tlsPort,
      localAddress: VISITOR,
      servername: host,
      headers: { host, 'x-forwarded-for': '203.0.113.9' },
      rejectUnauthorized: false,
      agent,
      path,
    }),
  )

const visitPlainly = async (at: HostGateway, host: string, agent: Agent) =>
  await answerTo(
    requestHttp({ host: HOST, port: at.gateway.port, localAddress: VISITOR, headers: { host }, agent }),
  )

/** The headers with which the unit was last asked. */
const headersSeen = () => {
  const head = origin.heads.at(-1) ?? []
  return Object.fromEntries(
    head.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), head[at + 1]]] : [])),
  )
}

async function greet(at: HostGateway, options: { servername?: string; alpn?: string; over?: Socket } = {}) {
  const { servername, alpn, over } = options
  const client = connectTls({
    ...(over ? { socket: over } : { port: at.gateway.tlsPort, host: HOST }),
    rejectUnauthorized: false,
    ...(servername === undefined ? {} : { servername }),
    ...(alpn === undefined ? {} : { ALPNProtocols: [alpn] }),
  })
  await once(noted(client), 'secureConnect')
  return client
}

async function hear(client: Socket, wanted: Buffer | string): Promise<Buffer> {
  let said = Buffer.alloc(0)
  while (!said.includes(wanted)) {
    const [chunk] = (await once(client, 'data')) as [Buffer]
    said = Buffer.concat([said, chunk])
  }
  return said
}

describe('a visit that comes to the gateway of another host', () => {
  it('reaches its unit by HTTPS, which is told of the visitor as if they had come to its own gateway', async () => {
    const host = far.expose(origin.port)
    const agent = new TlsAgent({ keepAlive: true })
    expect(await visitByTls(near, host, agent)).toEqual({ status: 200, text: '/ of the unit' })
    expect(await visitByTls(near, host, agent, '/again')).toEqual({
      status: 200,
      text: '/again of the unit',
    })
    agent.destroy()
    expect(headersSeen()).toMatchObject({
      host,
      'x-forwarded-for': VISITOR,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': host,
    })
    expect(far.gateway.use).toHaveLength(4)
    expect(near.gateway.use).toEqual([])
  })

  it('reaches units of both hosts by one connection without TLS', async () => {
    const [one, other] = [near.expose(origin.port), far.expose(origin.port)]
    const agent = noted(new Agent({ keepAlive: true, maxSockets: 1 }))
    for (const host of [one, other, one, other, other]) {
      expect(await visitPlainly(near, host, agent)).toEqual({ status: 200, text: '/ of the unit' })
      expect(headersSeen()).toMatchObject({ host, 'x-forwarded-for': VISITOR, 'x-forwarded-proto': 'http' })
    }
    expect(near.gateway.gateway.count().connections).toBe(1)
    expect(far.gateway.gateway.count().connections).toBe(1)
  })

  it('has its secret checked, and its unit woken, by the gateway of its unit alone', async () => {
    const secret = 'a'.repeat(26)
    const host = far.expose(origin.port, { secret, state: 'sleeping', stoppedReason: 'idle' })
    far.gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    const wrong = host.replace(secret, 'b'.repeat(26))
    expect((await visitByTls(near, wrong)).status).toBe(404)
    expect(far.gateway.wakes).toEqual([])
    expect((await visitByTls(near, host)).status).toBe(200)
    const agent = noted(new Agent({ keepAlive: true }))
    expect((await visitPlainly(near, wrong, agent)).status).toBe(404)
    expect((await visitPlainly(near, host, agent)).status).toBe(200)
    expect(far.gateway.wakes).toHaveLength(2)
    expect(near.gateway.wakes).toEqual([])
  })

  it('goes by HTTP/2, where each connection is for the unit of its server name', async () => {
    const [own, other] = [near.expose(origin.port), far.expose(origin.port)]
    const open = (servername: string) =>
      noted(
        connectHttp2(`https://${HOST}:${near.gateway.tlsPort}`, { servername, rejectUnauthorized: false }),
      )
    const [toOwn, toOther] = [open(own), open(other)]
    expect(await visitByStream(toOther, other)).toBe('200 / of the unit')
    expect(headersSeen()).toMatchObject({ host: other, 'x-forwarded-proto': 'https' })
    // Browsers send it again on a connection of its own (RFC 9110, 15.5.20).
    expect(await visitByStream(toOwn, other)).toMatch(/^421 /)
    expect(await visitByStream(toOther, own)).toMatch(/^421 /)
    expect(await visitByStream(toOwn, own)).toBe('200 / of the unit')
  })

  it('goes by one connection of HTTP/2 to units of both hosts, if that names none', async () => {
    const [own, other] = [near.expose(origin.port), far.expose(origin.port)]
    const session = noted(
      connectHttp2(`https://${HOST}:${near.gateway.tlsPort}`, { servername: '', rejectUnauthorized: false }),
    )
    const asked = [own, other, own, other].map((host) => visitByStream(session, host))
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['200 / of the unit']))
  })

  it.each(['with its server name', 'without TLS'] as const)('becomes a WebSocket, %s', async (way) => {
    const port = await serve((unit) => {
      unit.once('data', () => {
        unit.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
        unit.on('data', (chunk) => unit.write(chunk))
      })
    })
    const host = far.expose(port)
    const client =
      way === 'without TLS'
        ? noted(connectTcp(near.gateway.port, HOST))
        : await greet(near, { servername: host })
    client.write(
      `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n`,
    )
    await hear(client, '101 Switching')
    client.write('one')
    await hear(client, 'one')
    client.write('two')
    await hear(client, 'two')
    client.end()
    await once(client, 'close')
    await expect.poll(() => far.gateway.gateway.count()).toEqual({ connections: 0, visits: 0 })
  })

  it('reaches a sandbox by its name for one port, and wakes none that is paused', async () => {
    const name = `8000-${'0af1'.repeat(8)}`
    const host = far.expose(origin.port, { name })
    expect((await visitByTls(near, host)).text).toBe('/ of the unit')
    expect((await visitByTls(far, host)).text).toBe('/ of the unit')
    far.expose(origin.port, { name, state: 'sleeping', stoppedReason: 'idle' })
    expect((await visitByTls(near, host)).status).toBe(502)
    expect(far.gateway.wakes).toEqual([])
  })

  it('reaches a port of a sandbox as its rules say, and wakes it where they do', async () => {
    const name = `8000-${'0af2'.repeat(8)}`
    const secretHash = createHash('sha256').update('the token').digest('base64')
    const portRules = { secretHash, host: 'mine.example:${PORT}', wakesFor: '5m' }
    const host = far.expose(origin.port, { name, portRules })
    const ask = async (headers: Record<string, string>) => {
      const { port } = near.gateway
      return await answerTo(
        requestHttp({ host: HOST, port, localAddress: VISITOR, headers: { host, ...headers } }),
      )
    }
    expect((await ask({})).status).toBe(403)
    expect((await ask({ 'e2b-traffic-access-token': 'another' })).status).toBe(403)
    expect((await ask({ 'e2b-traffic-access-token': 'the token' })).text).toBe('/ of the unit')
    expect(headersSeen()).toMatchObject({
      host: 'mine.example:8000',
      'x-forwarded-host': host,
    })
    expect(headersSeen()).not.toHaveProperty('e2b-traffic-access-token')
    far.gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    far.expose(origin.port, {
      name,
      state: 'sleeping',
      stoppedReason: 'idle',
      portRules: { ...portRules, secretHash: null },
    })
    expect((await ask({})).text).toBe('/ of the unit')
    expect(far.gateway.wakes).toHaveLength(1)
    far.expose(origin.port, {
      name,
      state: 'stopped',
      stoppedReason: 'user',
      portRules: { ...portRules, secretHash: null },
    })
    expect((await ask({})).status).toBe(502)
  })

  it('reaches what listens for a sandbox alone, until that ends, and what listens for others then', async () => {
    const closed = await freePort(HOST)
    const other = await startOrigin((_request, response) => response.end('alone'))
    all.loopbacks.set(closed, other.port)
    const host = far.expose(closed, { name: `${closed}-${'0af5'.repeat(8)}` })
    expect((await visitByTls(near, host)).text).toBe('alone')
    expect((await visitByTls(far, host)).text).toBe('alone')
    await other.close()
    all.loopbacks.delete(closed)
    expect(await visitByTls(near, host)).toMatchObject({
      status: 502,
      text: expect.stringContaining('port is not open'),
    })
    const opened = createHttpServer((_request, response) => response.end('for all')).listen(closed, HOST)
    await once(opened, 'listening')
    expect((await visitByTls(near, host)).text).toBe('for all')
    opened.close()
  })

  it('sets no cookie for other names where a sandbox is told another host', async () => {
    const setting = await startOrigin((_request, response) => {
      response.setHeader('set-cookie', ['own=1', 'all=1; Domain=berth.localhost'])
      response.end()
    })
    const portRules = { secretHash: null, host: 'berth.localhost', wakesFor: null }
    const host = far.expose(setting.port, { name: `8000-${'0af4'.repeat(8)}`, portRules })
    const { port } = near.gateway
    const asked = requestHttp({ host: HOST, port, localAddress: VISITOR, headers: { host } }).end()
    const [response] = await once(asked, 'response')
    expect(response.headers['set-cookie']).toEqual(['own=1'])
    await setting.close()
  })

  it('reaches the server by the names that it answers itself', async () => {
    const server = createHttpServer((request, response) =>
      response.end(
        [request.url, request.headers['e2b-sandbox-id'], request.headers['e2b-host']].map(String).join(' '),
      ),
    ).listen(all.serverSocket)
    await once(server, 'listening')
    const id = '0af3'.repeat(8)
    for (const at of [near, far]) {
      expect((await visitByTls(at, 'api.berth.localhost', new TlsAgent(), '/sandboxes')).text).toBe(
        '/e2b/sandboxes undefined api.berth.localhost',
      )
      expect((await visitByTls(at, `49983-${id}.berth.localhost`, new TlsAgent(), '/health')).text).toBe(
        `/e2b/sandbox/health ${id} undefined`,
      )
    }
    server.close()
  })

  it('sends and receives a large body whole', async () => {
    const received = Promise.withResolvers<number>()
    const echo = await startOrigin(async (request, response) => {
      let bytes = 0
      for await (const chunk of request) bytes += (chunk as Buffer).length
      received.resolve(bytes)
      response.end(Buffer.alloc(bytes, 'x'))
    })
    const size = 5_000_000
    for (const plain of [true, false]) {
      const host = far.expose(echo.port)
      const asked = plain
        ? requestHttp({ host: HOST, port: near.gateway.port, headers: { host }, method: 'POST' })
        : requestHttps({
            host: HOST,
            port: near.gateway.tlsPort,
            servername: host,
            headers: { host },
            method: 'POST',
            rejectUnauthorized: false,
            agent: false,
          })
      asked.write(Buffer.alloc(size, 'x'))
      const answer = await answerTo(asked)
      expect([await received.promise, answer.text.length]).toEqual([size, size])
    }
    await echo.close()
  })

  it('reaches a server of its own protocol by its server name or by the port of its endpoint', async () => {
    const port = await serve((unit) => unit.on('data', () => unit.write('+PONG\r\n')))
    const host = far.expose(port, { protocol: 'redis' })
    const named = await greet(near, { servername: host })
    named.write(PING)
    await hear(named, '+PONG')

    const owned = await freePort(HOST)
    near.gateway.endpointPorts.push({ port: owned, name: host.split('.')[0] ?? '', protocol: 'redis' })
    await expect.poll(() => isOpen(owned)).toBe(true)
    const nameless = connectTls({ port: owned, host: HOST, rejectUnauthorized: false, servername: '' })
    await once(noted(nameless), 'secureConnect')
    nameless.write(PING)
    await hear(nameless, '+PONG')
  })
})

async function isOpen(port: number): Promise<boolean> {
  const socket = noted(connectTcp(port, HOST))
  const isThere = await Promise.race([
    once(socket, 'connect').then(
      () => true,
      () => false,
    ),
    once(socket, 'close').then(() => false),
  ])
  socket.destroy()
  return isThere
}

async function visitByStream(session: ClientHttp2Session, host: string): Promise<string> {
  const stream = session.request({ ':path': '/', ':authority': host })
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return `${String(headers[':status'])} ${text}`
}

describe('PostgreSQL through the gateway of another host', () => {
  /** A server that gives each session this key; `cancels` is what it was asked to cancel. */
  async function startServer(at: HostGateway) {
    const cancels: Buffer[] = []
    const port = await serve((unit) => {
      unit.once('data', (said) => {
        if (said.equals(STARTUP)) return unit.write(Buffer.concat([keyed(KEY), READY]))
        cancels.push(said)
        return unit.end()
      })
    })
    return { host: at.expose(port, { protocol: 'postgres' }), cancels }
  }

  async function begin(at: HostGateway, servername: string): Promise<TLSSocket> {
    const asking = noted(connectTcp(at.gateway.tlsPort, HOST))
    asking.write(SSL_REQUEST)
    expect(String((await once(asking, 'data'))[0])).toBe('S')
    const client = await greet(at, { servername, over: asking })
    client.write(STARTUP)
    await hear(client, READY)
    return client
  }

  it.each(['near', 'far'] as const)(
    'is cancelled by a request to any gateway, here the %s one',
    async (to) => {
      const { host, cancels } = await startServer(far)
      await begin(near, host)
      for (let sent = 1; sent <= 2; sent += 1) {
        const client = noted(connectTcp((to === 'near' ? near : far).gateway.tlsPort, HOST))
        client.write(cancelOf(KEY))
        await once(client.resume(), 'close')
        expect(cancels).toEqual(Array(sent).fill(cancelOf(KEY)))
      }
    },
  )

  it('is not cancelled by a request with a key that no session has', async () => {
    const { host, cancels } = await startServer(far)
    await begin(near, host)
    const client = noted(connectTcp(near.gateway.tlsPort, HOST))
    client.write(cancelOf(Buffer.from('0000002a00000000', 'hex')))
    await once(client.resume(), 'close')
    expect(cancels).toEqual([])
  })

  it('is told if the host is away', async () => {
    const { host } = await startServer(far)
    await far.leave()
    const client = await greet(near, { servername: host, alpn: 'postgresql' })
    client.write(STARTUP)
    expect(String(await hear(client, '57P03'))).toContain(errorMessageOf({ kind: 'host-away' }).title)
  })
})

describe('the host of a unit that is away', () => {
  it('gets its visitors 503 at once, with host_away, until it is back', async () => {
    const host = far.expose(origin.port)
    const agent = noted(new Agent({ keepAlive: true }))
    expect((await visitByTls(near, host)).status).toBe(200)
    expect((await visitPlainly(near, host, agent)).status).toBe(200)
    await far.leave()
    for (let times = 0; times < 2; times += 1) {
      const byTls = await visitByTls(near, host)
      expect([byTls.status, JSON.parse(byTls.text)]).toMatchObject([503, { error: { code: 'host_away' } }])
      expect(await visitPlainly(near, host, agent)).toEqual(byTls)
    }
    // Its own visitors still come.
    expect((await visitByTls(far, host)).status).toBe(200)
  })
})
