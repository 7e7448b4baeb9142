// Which requests reach a unit, which ones wake it, and what every other client receives (reliability S19 and S20).

import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newEndpointSecret } from '../../contract/endpoint-label.ts'
import {
  DOMAIN,
  type Origin,
  startGateway,
  startOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'
import { type VisitRefusal, visitRefusals } from '../../contract/visit.ts'
import { freePort } from '../../lib/free-port.ts'
import { sessionLimits } from '../sessions/session-limits.ts'

let gateway: TestGateway
let origin: Origin
const closers: (() => unknown)[] = []

beforeEach(async () => {
  gateway = await startGateway({ waitingPerUnit: 20, visitsPerUnit: 30, visitsPerPeer: 50 })
  origin = await startOrigin((asked, response) => {
    if (asked.url === '/held') return
    if (asked.url === '/events')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    else response.end('here')
  })
})
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  await expect.poll(() => gateway.gateway.count().visits).toBe(0)
  await gateway.close()
  await origin.close()
})

type Got = { status: number; headers: IncomingMessage['headers']; body: string }

function session(host: string, path = '/', headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      port: gateway.port,
      agent: false,
      path,
      headers: { host, ...headers },
    })
    closers.push(() => asked.destroy())
    asked.on('error', reject)
    asked.on('response', (message) => {
      let body = ''
      message.on('data', (chunk) => {
        body += String(chunk)
      })
      message.on('error', reject)
      message.on('end', () => resolve({ status: message.statusCode ?? 0, headers: message.headers, body }))
    })
    asked.end()
  })
}

const asleep = { state: 'sleeping', stoppedReason: 'idle' } as const
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Makes every wake wait until `open` is called, and then succeed. */
function gate(): { open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  gateway.onWake = async (route) => {
    await opened
    return { kind: 'running', route: { ...route, state: 'running', generation: route.generation + 1 } }
  }
  return { open }
}

describe('a private link', () => {
  it('opens with its secret, which the Referrer-Policy keeps within its origin', async () => {
    const host = gateway.expose(origin.port, { secret: newEndpointSecret() })
    const got = await session(host)
    expect(got.body).toBe('here')
    expect(got.headers['referrer-policy']).toBe('same-origin')
  })

  it('with a wrong secret responds like an unknown name and does not wake the unit', async () => {
    const secret = newEndpointSecret()
    const host = gateway.expose(origin.port, { secret, name: 'mine-abcdefghij', ...asleep })
    const elsewhere = newEndpointSecret()
    gateway.expose(origin.port, { secret: elsewhere })
    const nobody = await session(`nobody-abcdefghij.${DOMAIN}`)
    const wrong = ['', `-${newEndpointSecret()}`, `-${elsewhere}`, `-${secret.slice(1)}`, `-${secret}a`]
    for (const suffix of wrong) {
      const got = await session(`mine-abcdefghij${suffix}.${DOMAIN}`)
      expect([got.status, got.body]).toEqual([404, nobody.body])
      expect(Object.keys(got.headers)).toEqual(Object.keys(nobody.headers))
    }
    expect(gateway.wakes).toEqual([])
    expect(gateway.use).toEqual([])
    await session(host)
    expect(gateway.wakes).toHaveLength(1)
  })

  it('of a public endpoint does not open with a secret', async () => {
    gateway.expose(origin.port, { name: 'mine-abcdefghij' })
    expect((await session(`mine-abcdefghij-${newEndpointSecret()}.${DOMAIN}`)).status).toBe(404)
    expect((await session(`mine-abcdefghij.${DOMAIN}`)).status).toBe(200)
  })
})

describe('the gateway responds', () => {
  it.each([
    DOMAIN,
    `api.${DOMAIN}`,
    `nobody-abcdefghij.${DOMAIN}`,
    `a.nobody-abcdefghij.${DOMAIN}`,
    '127.0.0.1',
    '[::1]:7080',
    'localhost:7070',
    'example.com',
  ])('with 404 at %s', async (host) => {
    gateway.expose(origin.port)
    expect((await session(host)).status).toBe(404)
    expect(gateway.wakes).toEqual([])
    expect(origin.seen).toEqual([])
  })

  it('with 503 while the routes cannot be loaded', async () => {
    gateway.routes.get = () => {
      throw new Error('the database is away')
    }
    const got = await session(`nobody-abcdefghij.${DOMAIN}`)
    expect([got.status, got.headers['retry-after']]).toEqual([503, '2'])
  })

  it('with 404 to HTTP at an endpoint of another protocol', async () => {
    expect((await session(gateway.expose(origin.port, { protocol: 'postgres' }))).status).toBe(404)
  })
})

describe('a sleeping unit', () => {
  it('is woken once for many concurrent requests', async () => {
    const host = gateway.expose(origin.port, asleep)
    const { open } = gate()
    const visits = Array.from({ length: 20 }, () => session(host))
    await expect.poll(() => gateway.gateway.count().visits).toBe(20)
    open()
    const got = await Promise.all(visits)
    expect(got.map(({ body }) => body)).toEqual(Array(20).fill('here'))
    expect(gateway.wakes).toHaveLength(1)
  })

  it('gets no more waiting requests than its limit; the others receive 503', async () => {
    const host = gateway.expose(origin.port, asleep)
    const { open } = gate()
    const visits = Array.from({ length: 25 }, () => session(host))
    const refused: Got[] = []
    for (const answered of visits) void answered.then((got) => got.status === 503 && refused.push(got))
    await expect.poll(() => refused.length).toBe(5)
    expect(refused[0]?.headers['retry-after']).toBe('5')
    open()
    const statuses = (await Promise.all(visits)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(20)
  })

  it('that takes too long to wake gives 503 with Retry-After and a page that reloads', async () => {
    const host = gateway.expose(origin.port, asleep)
    gate()
    const page = session(host, '/', { accept: 'text/html' })
    await expect.poll(() => gateway.wakes.length).toBe(1)
    await gateway.later(sessionLimits.patienceMs.waking)
    const got = await page
    expect([got.status, got.headers['retry-after']]).toEqual([503, '2'])
    expect(got.body).toContain('http-equiv="refresh" content="2"')
  })

  it('gives 503 with the Retry-After of the server', async () => {
    gateway.onWake = async () => ({ kind: 'waiting', retryAfterS: 7 })
    const got = await session(gateway.expose(origin.port, asleep))
    expect([got.status, got.headers['retry-after']]).toEqual([503, '7'])
  })

  it('gives 503 when the wake request fails', async () => {
    gateway.onWake = async () => {
      throw new Error('the server is away')
    }
    expect((await session(gateway.expose(origin.port, asleep))).status).toBe(503)
  })

  it('gets its requests once its server listens', async () => {
    const port = await freePort('127.0.0.1')
    await origin.close()
    const host = gateway.expose(port, asleep)
    gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    setTimeout(() => {
      void startOrigin((_asked, response) => response.end('late'), port).then((late) => {
        origin = late
      })
    }, 300)
    expect((await session(host)).body).toBe('late')
  })

  it('does not hold a request whose client has disconnected', async () => {
    const host = gateway.expose(origin.port, asleep)
    gate()
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    await expect.poll(() => gateway.wakes.length).toBe(1)
    socket.destroy()
    await expect.poll(() => gateway.gateway.count().visits).toBe(0)
    expect(origin.seen).toEqual([])
  })

  it('receives requests at the address of the run that the wake returned', async () => {
    const host = gateway.expose(1, { ...asleep, address: null })
    gateway.onWake = async (route) => ({
      kind: 'running',
      route: { ...route, state: 'running', address: '127.0.0.1', port: origin.port },
    })
    expect((await session(host)).body).toBe('here')
  })

  it('without an address gives 502 and is not sought on the gateway’s own host', async () => {
    const host = gateway.expose(origin.port, { ...asleep, address: null })
    gateway.onWake = async (route) => {
      // By the time the visit has tried for long enough.
      gateway.clock.advance(sessionLimits.refusingMs.woken)
      return { kind: 'running', route: { ...route, state: 'running' } }
    }
    expect((await session(host)).status).toBe(502)
    expect(origin.seen).toEqual([])
  })
})

describe('a unit that cannot be woken', () => {
  const codes: Record<VisitRefusal, [number, string]> = {
    stopped: [503, 'unit_stopped'],
    exited: [503, 'unit_exited'],
    cap: [503, 'unit_over_limit'],
    credits: [503, 'unit_out_of_credits'],
    gone: [404, 'not_found'],
    'no-room': [503, 'no_room'],
    failed: [502, 'wake_failed'],
  }

  it.each(visitRefusals)('gives a status, an error code and a page for the reason %s', async (reason) => {
    const host = gateway.expose(origin.port, { state: 'stopped', stoppedReason: 'user' })
    gateway.onWake = async () => ({ kind: 'refused', reason })
    const [status, code] = codes[reason]
    const got = await session(host)
    expect([got.status, JSON.parse(got.body).error.code]).toEqual([status, code])
    expect(gateway.use).toEqual([])
    const page = await session(host, '/', { accept: 'text/html,*/*' })
    expect(page.status).toBe(status)
    expect(page.body).toMatch(/^<!doctype html>/)
  })
})

describe('an error page of the gateway', () => {
  it('has a strict content security policy, is not cached, and does not echo the request', async () => {
    const got = await session(`nobody-abcdefghij.${DOMAIN}`, '/<script>?x=<script>', {
      accept: 'text/html',
      'user-agent': '<script>',
    })
    expect(got.headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
    expect(got.headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(got.body).not.toMatch(/script|nobody/)
  })
})

describe('a running unit', () => {
  it('whose port is closed gives 502 with not_listening after a short wait', async () => {
    const port = await freePort('127.0.0.1')
    const answered = session(gateway.expose(port))
    await pause(100)
    gateway.clock.advance(sessionLimits.refusingMs.running)
    const got = await answered
    expect([got.status, JSON.parse(got.body).error.code]).toEqual([502, 'not_listening'])
    expect(got.body).toContain(String(port))
  })

  it('that fell asleep after its route was read is woken, although connecting took all of the patience', async () => {
    const host = gateway.expose(await freePort('127.0.0.1'))
    const [name = ''] = host.split('.')
    gateway.isAwake = (route) => {
      gateway.expose(origin.port, { ...asleep, name })
      gateway.clock.advance(sessionLimits.refusingMs.running)
      return route.state === 'running'
    }
    gateway.onWake = async (route) => ({ kind: 'running', route: { ...route, state: 'running' } })
    expect((await session(host)).body).toBe('here')
  })

  it('that does not respond in time gives 504', async () => {
    const answered = session(gateway.expose(origin.port), '/held')
    await expect.poll(() => origin.seen).toEqual(['GET /held'])
    await gateway.later(sessionLimits.patienceMs.awaiting)
    expect((await answered).status).toBe(504)
  })

  it('is marked in use from the start to the end of a request', async () => {
    const host = gateway.expose(origin.port, { unitId: 'unit_a' })
    await session(host)
    expect(gateway.use).toEqual(['begin unit_a', 'end unit_a'])
  })

  it('with an open event stream is marked in use only when data passes', async () => {
    await origin.close()
    let send: (text: string) => void = () => {}
    origin = await startOrigin((_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      send = (text) => response.write(text)
    })
    const { port } = origin
    session(gateway.expose(port, { unitId: 'unit_a' })).catch(() => {})
    await expect.poll(() => gateway.use).toEqual(['begin unit_a', 'end unit_a'])
    await gateway.later(0)
    gateway.use.length = 0
    await gateway.later(sessionLimits.patienceMs.answering)
    expect(gateway.use).toEqual([])
    send('data: 1\n\n')
    await pause(50)
    await gateway.later(0)
    expect(gateway.use).toEqual(['touch unit_a'])
  })

  it('gets no more concurrent requests than the limits per unit and per peer', async () => {
    const host = gateway.expose(origin.port)
    for (let at = 0; at < 30; at += 1) session(host, '/held').catch(() => {})
    await expect.poll(() => origin.seen.length).toBe(30)
    expect((await session(host)).status).toBe(503)
    const next = gateway.expose(origin.port)
    for (let at = 0; at < 20; at += 1) session(next, '/held').catch(() => {})
    await expect.poll(() => origin.seen.length).toBe(50)
    expect((await session(gateway.expose(origin.port))).status).toBe(503)
  })
})

describe('an open response is aborted', () => {
  const name = 'mine-abcdefghij'
  const secret = newEndpointSecret()

  it.each<[string, () => void]>([
    ['when its endpoint is deleted', () => gateway.routes.delete(name)],
    [
      'when its secret changes',
      () => gateway.expose(origin.port, { name, unitId: 'u', secret: newEndpointSecret() }),
    ],
    ['when its endpoint becomes public', () => gateway.expose(origin.port, { name, unitId: 'u' })],
    [
      'when its unit is restarted',
      () => gateway.expose(origin.port, { name, unitId: 'u', secret, generation: 2 }),
    ],
    [
      'when its unit is stopped',
      () => gateway.expose(origin.port, { name, unitId: 'u', secret, state: 'stopped' }),
    ],
    ['when its endpoint moves to another port', () => gateway.expose(1, { name, unitId: 'u', secret })],
    [
      'when its endpoint moves to another unit',
      () => gateway.expose(origin.port, { name, unitId: 'v', secret }),
    ],
  ])('%s', async (_what, change) => {
    const host = gateway.expose(origin.port, { name, unitId: 'u', secret })
    const ended = session(host, '/events').then(
      () => 'whole',
      (error: Error) => error.message,
    )
    await expect.poll(() => gateway.use).toEqual(['begin u', 'end u'])
    await gateway.later(0)
    expect(gateway.gateway.count().visits).toBe(1)
    change()
    await gateway.later(0)
    expect(await ended).toBe('aborted')
  })

  it('not when its unit is frozen, and the next bytes thaw the unit', async () => {
    await origin.close()
    let send: (text: string) => void = () => {}
    origin = await startOrigin((_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      send = (text) => response.write(text)
    })
    const { port } = origin
    const host = gateway.expose(port, { name, unitId: 'u', secret })
    session(host).catch(() => {})
    await expect.poll(() => gateway.use).toHaveLength(2)
    await gateway.later(0)
    gateway.expose(port, { name, unitId: 'u', secret, ...asleep, frozen: true })
    await gateway.later(0)
    expect([gateway.gateway.count().visits, gateway.wakes.length]).toEqual([1, 0])
    send('data: 1\n\n')
    await pause(50)
    await gateway.later(0)
    expect(gateway.gateway.count().visits).toBe(1)
    expect(gateway.wakes.map((route) => route.unitId)).toContain('u')
  })
})
