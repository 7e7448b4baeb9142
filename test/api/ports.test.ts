// /v1/units/{id}/ports/{port}/…: the real API and the real gateway on the socket between them; a server on loopback stands for the
// unit's.

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Berth, type Unit as SdkUnit } from '../../packages/sdk/src/index.ts'
import { portNameOf } from '../../src/contract/port-host.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { listenForCallers, reachPort } from '../../src/gateway/handover/callers.ts'
import { silentLog } from '../../src/lib/log.ts'
import { DOMAIN, startGateway, type TestGateway } from '../support/gateway.ts'
import { makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let directory: string
let gateway: TestGateway
let callers: { close(): Promise<void> }
let service: Service
let team: TestTeam
let unit: Unit
let sdk: SdkUnit

/** The unit's own server. */
const seen: IncomingMessage[] = []
let answer: (asked: IncomingMessage, response: ServerResponse) => unknown = () => {}
const server = createServer((asked, response) => {
  seen.push(asked)
  answer(asked, response)
})
const sockets = new WebSocketServer({ noServer: true })
server.on('upgrade', (asked, socket, head) => {
  seen.push(asked)
  if (asked.url === '/refused') socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
  else
    sockets.handleUpgrade(asked, socket, head, (client) => {
      client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }))
    })
})

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-ports-'))
  const socketPath = join(directory, 'socket')
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  gateway = await startGateway()
  callers = await listenForCallers(gateway.gateway, {
    socketPath,
    gid: process.getgid?.() ?? 0,
    log: silentLog,
  })
  service = await startService({ reachPort: async (asked) => await reachPort(socketPath, asked) })
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
  gateway.expose(port(), { name: portNameOf({ unitId: unit.id, port: port() }), unitId: unit.id })
  sdk = await new Berth({ url: service.baseUrl, apiKey: team.key }).units.get(unit.id)
})
afterAll(async () => {
  await callers.close()
  await gateway.close()
  await service.close()
  server.closeAllConnections()
  server.close()
  await rm(directory, { recursive: true })
})
beforeEach(() => {
  seen.length = 0
  answer = (_asked, response) => response.end('hello')
})

const port = () => (server.address() as AddressInfo).port
const bearer = () => ({ authorization: `Bearer ${team.key}` })
const pathTo = (path: string, at: number | string = port()) => `/v1/units/${unit.id}/ports/${at}${path}`
const ask = async (
  path = '/',
  init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string>; duplex?: 'half' } = {},
) => await fetch(service.baseUrl + pathTo(path), { ...init, headers: { ...bearer(), ...init.headers } })
const rowsOf = async () =>
  (await service.call<{ events: object[] }>('GET', '/v1/audit?action=unit.port', { key: team.key })).body
    .events

describe('a request to a port of a unit', () => {
  it('arrives with its method, path, query, headers and body, and its answer with status and headers', async () => {
    answer = async (asked, response) => {
      let text = ''
      for await (const chunk of asked) text += String(chunk)
      response.writeHead(418, 'Short and stout', { 'x-own': 'yes', 'content-type': 'text/x-tea' })
      response.end(text.toUpperCase())
    }
    const got = await ask('/a%2Fb/../c?d=e&d=%20', {
      method: 'PATCH',
      body: 'tea',
      headers: { 'x-mine': 'too', 'content-type': 'text/plain' },
    })
    expect([got.status, got.statusText, await got.text()]).toEqual([418, 'Short and stout', 'TEA'])
    expect(Object.fromEntries(got.headers)).toMatchObject({
      'x-own': 'yes',
      'content-type': 'text/x-tea',
      'x-berth-answer': 'unit',
      'x-request-id': expect.stringMatching(/^req_/),
    })
    const [asked] = seen
    expect([asked?.method, asked?.url]).toEqual(['PATCH', '/c?d=e&d=%20'])
    expect(asked?.headers).toMatchObject({
      host: `localhost:${port()}`,
      'x-mine': 'too',
      'content-length': '3',
      'x-forwarded-for': '127.0.0.1',
    })
  })

  it('never has credentials of ours', async () => {
    await ask('/', {
      headers: { cookie: 'session=x', 'x-berth-team': team.teamId, 'proxy-authorization': 'Basic eA==' },
    })
    const names = Object.keys(seen[0]?.headers ?? {})
    expect(names).not.toEqual(expect.arrayContaining(['host', 'authorization']))
    expect(names.filter((name) => /cookie|auth|berth/.test(name))).toEqual([])
    expect(JSON.stringify(seen[0]?.rawHeaders)).not.toContain(team.key)
  })

  it.each(['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'])('may have the method %s', async (method) => {
    expect(await (await ask('/', { method })).text()).toBe('hello')
    expect(seen[0]?.method).toBe(method)
  })

  it('streams both ways, and whole', async () => {
    answer = (asked, response) => void asked.pipe(response)
    const bytes = Buffer.alloc(5_000_000, 'berth')
    const body = new Blob([bytes]).stream()
    const got = await ask('/', { method: 'POST', body, duplex: 'half' })
    expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true)
  })

  it('is answered piece by piece', async () => {
    answer = (_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
    }
    const stop = new AbortController()
    const reader = (await ask('/events', { signal: stop.signal })).body?.getReader()
    expect(String(Buffer.from((await reader?.read())?.value ?? []))).toBe('data: one\n\n')
    stop.abort()
    await expect.poll(() => seen[0]?.destroyed).toBe(true)
  })

  it('has a row in the audit log, as a read, without its path', async () => {
    await ask('/secret-path', { method: 'POST' })
    await expect.poll(rowsOf).toContainEqual(
      expect.objectContaining({
        target: unit.id,
        status: 200,
        input: { port: port(), method: 'POST' },
      }),
    )
    expect(JSON.stringify(await rowsOf())).not.toContain('secret-path')
  })
})

describe('an answer of a unit', () => {
  it('cannot act in our origin', async () => {
    answer = (_asked, response) => {
      response.writeHead(200, {
        'content-type': 'text/html',
        'set-cookie': 'session=stolen',
        'clear-site-data': '"cookies"',
        'content-security-policy': 'script-src *',
        'service-worker-allowed': '/',
        'access-control-allow-origin': '*',
        'strict-transport-security': 'max-age=1',
        'www-authenticate': 'Basic',
        'x-berth-outcome': 'not_listening',
        'x-berth-dashboard': 'other',
        'cache-control': 'public, max-age=3600',
      })
      response.end('<script>alert(1)</script>')
    }
    const got = await ask()
    const headers = Object.fromEntries(got.headers)
    for (const name of ['set-cookie', 'clear-site-data', 'service-worker-allowed', 'www-authenticate'])
      expect(headers).not.toHaveProperty(name)
    expect(headers).not.toHaveProperty('access-control-allow-origin')
    expect(headers).not.toHaveProperty('strict-transport-security')
    expect(headers).toMatchObject({
      'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
  })

  it.each([
    ['/login?a=b', '/login?a=b'],
    ['next', '/dir/next'],
    ['../../../../../v1/units', '/v1/units'],
    ['/%2e%2e/%2e%2e/x', '/x'],
    ['x\\..\\..\\..\\y', '/y'],
    ['http://localhost:PORT/x', '/x'],
    ['http://SERVICE/v1/units', '/v1/units'],
    ['//SERVICE/v1/units', '/v1/units'],
  ])('that leads to %s leads nowhere on our server but below its port', async (location, path) => {
    const own = new URL(service.baseUrl).host
    const sent = location.replace('PORT', String(port())).replace('SERVICE', own)
    answer = (_asked, response) => response.writeHead(307, { location: sent }).end()
    const got = await ask('/dir/page', { redirect: 'manual' })
    expect(got.headers.get('location')).toBe(pathTo(path))
  })

  it.each(['https://example.test/x', 'javascript:alert(1)'])(
    'may lead to %s only on the web',
    async (location) => {
      answer = (_asked, response) => response.writeHead(302, { location }).end()
      const got = await ask('/', { redirect: 'manual' })
      expect(got.headers.get('location')).toBe(location.startsWith('https:') ? location : null)
    },
  )
})

describe('a WebSocket of a unit', () => {
  const open = async (path: string, headers: Record<string, string>, protocols: string[] = []) => {
    const url = service.baseUrl.replace('http', 'ws') + pathTo(path)
    const socket = new WebSocket(url, protocols, { headers })
    const [kind, response] = await Promise.race([
      once(socket, 'open').then(() => ['open', null] as const),
      once(socket, 'unexpected-response').then(([, got]) => ['refused', got as IncomingMessage] as const),
    ])
    return { socket, kind, status: response?.statusCode }
  }

  it('carries text and bytes, by a key in a header', async () => {
    const { socket } = await open('/echo?x=1', bearer())
    socket.send('hello')
    expect(String((await once(socket, 'message'))[0])).toBe('hello')
    const bytes = Buffer.alloc(300_000, 7)
    socket.send(bytes)
    expect(bytes.equals((await once(socket, 'message'))[0] as Buffer)).toBe(true)
    expect(seen[0]?.url).toBe('/echo?x=1')
    socket.close()
    await expect.poll(rowsOf).toContainEqual(expect.objectContaining({ status: 101 }))
  })

  it('takes the key as a protocol, which the unit never sees', async () => {
    const offered = `base64url.bearer.authorization.berth.${Buffer.from(team.key).toString('base64url')}`
    const { socket } = await open('/echo', {}, ['chat', offered])
    expect(socket.protocol).toBe('chat')
    expect(seen[0]?.headers['sec-websocket-protocol']).toBe('chat')
    socket.close()
  })

  it('that the unit refuses, or that has no key, is refused in the words of the API', async () => {
    expect(await open('/refused', bearer())).toMatchObject({ kind: 'refused', status: 502 })
    expect(await open('/echo', {})).toMatchObject({ kind: 'refused', status: 401 })
  })
})

describe('a caller', () => {
  const errorOf = async (response: Response) => ({
    status: response.status,
    ...((await response.json()) as object),
  })

  it('without a key, or with a session alone, is refused', async () => {
    const bare = await fetch(service.baseUrl + pathTo('/'))
    expect(await errorOf(bare)).toMatchObject({ status: 401, error: { code: 'unauthorized' } })
    const cookie = await makeSession(service, team)
    const browser = await fetch(service.baseUrl + pathTo('/'), { headers: { cookie } })
    expect(browser.status).toBe(401)
    expect(seen).toEqual([])
  })

  it('of another team is refused', async () => {
    const stranger = await makeTeam(service)
    const got = await ask('/', { headers: { authorization: `Bearer ${stranger.key}` } })
    expect(await errorOf(got)).toMatchObject({ status: 403, error: { code: 'forbidden' } })
    expect(seen).toEqual([])
  })

  it.each(['0', '70000', 'x', '08'])('cannot ask for the port %s', async (at) => {
    const got = await fetch(service.baseUrl + pathTo('/', at), { headers: bearer() })
    expect(got.status).toBe(404)
  })

  it('is told that nothing listens at a port', async () => {
    const closed = createServer()
    closed.listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port: at } = closed.address() as AddressInfo
    closed.close()
    gateway.expose(at, { name: portNameOf({ unitId: unit.id, port: at }), unitId: unit.id })
    const asked = fetch(service.baseUrl + pathTo('/', at), { headers: bearer() })
    const moving = setInterval(() => void gateway.later(3000), 50)
    const got = await errorOf(await asked)
    clearInterval(moving)
    expect(got).toMatchObject({
      status: 502,
      error: {
        code: 'provider_error',
        message: expect.stringContaining(`nothing listens on its port ${at}`),
      },
    })
  })

  it('who asks the gateway itself by such a name finds nothing', async () => {
    const name = portNameOf({ unitId: unit.id, port: port() })
    for (const host of [`${name}.${DOMAIN}`, name]) {
      const asked = request({ port: gateway.port, host: '127.0.0.1', headers: { host } }).end()
      const [got] = (await once(asked, 'response')) as [IncomingMessage]
      got.resume()
      expect(got.statusCode).toBe(404)
    }
    expect(seen).toEqual([])
  })

  it('of a stopped unit is told so', async () => {
    const stopped = await makeUnit(service, team)
    await service.call('POST', `/v1/units/${stopped.id}/stop`, { key: team.key })
    const got = await fetch(`${service.baseUrl}/v1/units/${stopped.id}/ports/80/`, { headers: bearer() })
    expect(await errorOf(got)).toMatchObject({ status: 409, error: { code: 'invalid_state' } })
  })

  it('wakes a unit that sleeps', async () => {
    await service.call('POST', `/v1/units/${unit.id}/sleep`, {
      key: team.key,
      body: { sleep: '30m', now: true },
    })
    expect(await (await ask()).text()).toBe('hello')
    const { body } = await service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })
    expect(body.state).toBe('running')
  })

  it('who goes away early ends the request to the unit', async () => {
    answer = () => {}
    const asked = request(service.baseUrl + pathTo('/slow'), { headers: bearer() })
    asked.on('error', () => {})
    asked.end()
    await expect.poll(() => seen.length).toBe(1)
    asked.destroy()
    await expect.poll(() => seen[0]?.socket.destroyed).toBe(true)
  })
})

describe('the SDK', () => {
  it('fetches from a port as from any server, whatever its status', async () => {
    answer = (asked, response) => response.writeHead(404).end(`no ${asked.url}`)
    const got = await sdk.fetch(port(), 'thing?x=1')
    expect([got.status, await got.text()]).toEqual([404, 'no /thing?x=1'])
    expect(sdk.portUrl(port())).toBe(service.baseUrl + pathTo('/'))
  })

  it('throws what is not the unit’s answer', async () => {
    await expect(sdk.fetch(70_000)).rejects.toMatchObject({ code: 'not_found' })
  })
})
