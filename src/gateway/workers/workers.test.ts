// Several gateways of one host: what a visitor began at one of them, it can name at another one. Each listens on a port of its
// own here, so that a test chooses where a connection arrives, and on a common one where chance decides.

import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../../test/support/clock.ts'
import {
  DOMAIN,
  type RawOrigin,
  startGateway,
  startRawOrigin,
  type TestGateway,
} from '../../../test/support/gateway.ts'
import { cancelOf, keyed, READY, STARTUP } from '../../../test/support/postgres-messages.ts'
import { DAY, systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { newTicketSecret, type TicketSecret } from '../../lib/ticket-secret.ts'
import { createGatewayMetrics, withOtherWorkers } from '../../metrics/gateway-metrics.ts'
import { type Challenges, createChallenges } from '../certificates/acme-challenges.ts'
import { followOnDemandTls } from '../certificates/ordered-elsewhere.ts'
import type { Route } from '../route.ts'
import { dividedLimits, sessionLimits } from '../sessions/session-limits.ts'
import { createMysqlSessions } from '../sessions/mysql-sessions.ts'
import { shareMysqlSessions } from './shared-sessions.ts'
import { createPeers, type Peers } from './peers.ts'
import { followTicketKeys, type TicketKeys } from './ticket-keys.ts'

const KEY = Buffer.from('0000002a11223344', 'hex')

type Worker = { gateway: TestGateway; peers: Peers; tickets: TicketKeys; clock: TestClock }

let directory: string
let secret: TicketSecret
let routes: Map<string, Route>
let workers: Worker[]
let origins: RawOrigin[]
let clients: Socket[]
let challenges: Challenges

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-workers-'))
  secret = newTicketSecret(new Date())
  routes = new Map()
  workers = []
  origins = []
  clients = []
  for (const number of [0, 1]) workers.push(await startWorker(number))
  await areLinked()
})
afterEach(async () => {
  for (const client of clients) client.destroy()
  await Promise.all(workers.map(stopWorker))
  await Promise.all(origins.map((origin) => origin.close()))
  await rm(directory, { recursive: true })
})

async function startWorker(number: number, tlsPort = 0, isShared = false): Promise<Worker> {
  const clock = createTestClock()
  const peers = createPeers({ number, of: 2, directory, clock: systemClock, log: silentLog })
  const tickets = followTicketKeys(secret, { clock, log: silentLog })
  const gateway = await startGateway(
    { headersMs: 20_000 },
    {
      peers,
      tickets,
      routes,
      tlsPort,
      isShared,
      certificatesBeside: async ({ followed, routes: known }) => {
        if (number === 0) {
          challenges = createChallenges(peers)
          return { ...followed, challenges }
        }
        const order = async () => {}
        return followOnDemandTls({ followed, order, directory, domain: DOMAIN, routes: known, peers, clock })
      },
    },
  )
  const metrics = createGatewayMetrics(() => gateway.gateway.count(), peers)
  peers.answer('metrics', async () => ({ text: await metrics.read() }))
  await peers.open()
  return { gateway, peers, tickets, clock }
}

async function stopWorker({ gateway, peers, tickets }: Worker): Promise<void> {
  await gateway.close()
  await peers.stop()
  await tickets.stop()
}

const worker = (number: number) => {
  const found = workers[number]
  if (!found) throw new Error(`there is no gateway ${number}`)
  return found
}

/** Until each answers the other. */
async function areLinked(): Promise<void> {
  await expect.poll(() => isAnswered(0, 1)).toBe(true)
  await expect.poll(() => isAnswered(1, 0)).toBe(true)
}

async function isAnswered(from: number, by: number): Promise<boolean> {
  const asked = worker(from).peers.ask(by, 'metrics', {})
  return await asked.then(Boolean, () => false)
}

/** A server of PostgreSQL that gives each session this key; `cancels` is what it was asked to cancel. */
async function startServer(key: Buffer): Promise<{ host: string; cancels: Buffer[] }> {
  const cancels: Buffer[] = []
  const origin = await startRawOrigin((socket) => {
    socket.once('data', (said) => {
      if (said.equals(STARTUP)) return socket.write(Buffer.concat([keyed(key), READY]))
      cancels.push(said)
      return socket.end()
    })
  })
  origins.push(origin)
  return { host: worker(0).gateway.expose(origin.port, { protocol: 'postgres' }), cancels }
}

async function beginSession(at: Worker, servername: string): Promise<TLSSocket> {
  const to = { port: at.gateway.tlsPort, host: '127.0.0.1', servername, ALPNProtocols: ['postgresql'] }
  const client = connectTls({ ...to, rejectUnauthorized: false })
  clients.push(client)
  client.on('error', () => {})
  client.write(STARTUP)
  let said = Buffer.alloc(0)
  while (!said.includes(READY)) {
    const [chunk] = (await once(client, 'data')) as [Buffer]
    said = Buffer.concat([said, chunk])
  }
  return client
}

/** Sends the request and waits until the gateway closes. */
async function cancel(at: Worker, request: Buffer): Promise<void> {
  const client = connectTcp(at.gateway.tlsPort, '127.0.0.1')
  clients.push(client)
  client.on('error', () => {})
  client.end(request)
  client.resume()
  await once(client, 'close')
}

describe('a request to cancel', () => {
  it('reaches the session at whichever gateway it arrives, at once', async () => {
    const server = await startServer(KEY)
    for (const at of [worker(0), worker(1)])
      for (const from of [worker(0), worker(1)]) {
        const session = await beginSession(at, server.host)
        await cancel(from, cancelOf(KEY))
        session.destroy()
        await expect.poll(() => at.gateway.gateway.count().visits).toBe(0)
        await cancel(from, cancelOf(KEY))
      }
    expect(server.cancels).toEqual([1, 2, 3, 4].map(() => cancelOf(KEY)))
  })

  it('is not forwarded while units at two gateways have issued the same key', async () => {
    const [server, copier] = [await startServer(KEY), await startServer(KEY)]
    await beginSession(worker(0), server.host)
    const copied = await beginSession(worker(1), copier.host)
    for (const at of workers) await cancel(at, cancelOf(KEY))
    expect([server.cancels, copier.cancels]).toEqual([[], []])
    copied.destroy()
    await expect.poll(() => worker(1).gateway.gateway.count().visits).toBe(0)
    await cancel(worker(1), cancelOf(KEY))
    expect(server.cancels).toEqual([cancelOf(KEY)])
  })

  it('reaches sessions from before the other gateway was restarted, and not those that ended with it', async () => {
    const [server, other] = [await startServer(KEY), await startServer(Buffer.from(KEY).fill(9, 4))]
    await beginSession(worker(0), server.host)
    await beginSession(worker(1), other.host)
    await stopWorker(worker(1))
    const reachesEnded = async () => {
      const before = other.cancels.length
      await cancel(worker(0), cancelOf(Buffer.from(KEY).fill(9, 4)))
      return other.cancels.length > before
    }
    // What it published ends with its connection, whose end the other one sees a moment later.
    await expect.poll(reachesEnded).toBe(false)
    expect(await reachesEnded()).toBe(false)
    workers[1] = await startWorker(1)
    await areLinked()
    expect(await reachesEnded()).toBe(false)
    await cancel(worker(1), cancelOf(KEY))
    expect(server.cancels).toEqual([cancelOf(KEY)])
  })
})

describe('a session of TLS', () => {
  async function greet(at: Worker, version: 'TLSv1.2' | 'TLSv1.3', session?: Buffer) {
    const client = connectTls({
      port: at.gateway.tlsPort,
      host: '127.0.0.1',
      servername: `web.${DOMAIN}`,
      rejectUnauthorized: false,
      maxVersion: version,
      ...(session && { session }),
    })
    clients.push(client)
    client.on('error', () => {})
    const told: Buffer[] = []
    client.on('session', (ticket) => told.push(ticket))
    await once(client, 'secureConnect')
    const isReused = client.isSessionReused()
    client.end('GET / HTTP/1.1\r\nconnection: close\r\n\r\n')
    await once(client.resume(), 'close')
    return { isReused, ticket: told.at(-1) }
  }

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('resumes at another gateway, with %s', async (version) => {
    const { ticket } = await greet(worker(0), version)
    expect((await greet(worker(1), version, ticket)).isReused).toBe(true)
    expect((await greet(worker(0), version, ticket)).isReused).toBe(true)
  })

  it('of the day before leads to a full handshake, and later ones resume at both again', async () => {
    const { ticket } = await greet(worker(0), 'TLSv1.3')
    for (const { clock } of workers) clock.advance(DAY)
    await expect.poll(async () => (await greet(worker(1), 'TLSv1.3', ticket)).isReused).toBe(false)
    await expect.poll(async () => (await greet(worker(0), 'TLSv1.3', ticket)).isReused).toBe(false)
    const { ticket: next } = await greet(worker(1), 'TLSv1.3')
    expect((await greet(worker(0), 'TLSv1.3', next)).isReused).toBe(true)
  })

  it('resumes at a gateway that was restarted', async () => {
    const { ticket } = await greet(worker(1), 'TLSv1.3')
    await stopWorker(worker(1))
    workers[1] = await startWorker(1)
    expect((await greet(worker(1), 'TLSv1.3', ticket)).isReused).toBe(true)
  })
})

describe('the id of a session of MySQL', () => {
  it('is known at every gateway for as long as the session lasts', async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), 'berth-workers-'))
    const peers = [0, 1].map((number) =>
      createPeers({ number, of: 2, directory: elsewhere, clock: systemClock, log: silentLog }),
    )
    const [here, there] = peers.map((each) => shareMysqlSessions(createMysqlSessions(), each))
    const run = { unitId: 'unit_1', generation: 3 }
    const end = here?.add({ given: 0x8000_0001, own: 7, run })
    await Promise.all(peers.map((each) => each.open()))
    await expect.poll(() => there?.find(0x8000_0001, run)).toBe(7)
    expect(there?.find(0x8000_0001, { ...run, generation: 4 })).toBeNull()
    end?.()
    await expect.poll(() => there?.find(0x8000_0001, run)).toBeNull()
    await Promise.all(peers.map((each) => each.stop()))
    await rm(elsewhere, { recursive: true })
  })

  it('differs between gateways', async () => {
    const ids = await Promise.all(workers.map(greetedId))
    expect(ids.map((id) => (id >>> 27) & 15)).toEqual([0, 1])
    expect(ids.every((id) => id >= 0x8000_0000)).toBe(true)
  })

  /** The id in the greeting that MySQL's port sends. */
  async function greetedId({ gateway }: Worker): Promise<number> {
    const client = connectTcp(gateway.mysqlPort, '127.0.0.1')
    clients.push(client)
    const [greeting] = (await once(client, 'data')) as [Buffer]
    // Behind the head of the packet, the protocol's version, and the server's version up to its zero.
    return greeting.readUInt32LE(greeting.indexOf(0, 5) + 1)
  }
})

describe('the challenge of an authority', () => {
  it('is answered by every gateway until it is withdrawn', async () => {
    const name = `web-abcdefghij.${DOMAIN}`
    await challenges.proof.offer({ name, keyAuthorization: 'token.thumbprint' })
    await expect.poll(() => isAnswered(worker(1), name)).toBe(true)
    expect(await isAnswered(worker(0), name)).toBe(true)
    await challenges.proof.withdraw({ name, keyAuthorization: 'token.thumbprint' })
    await expect.poll(() => isAnswered(worker(1), name)).toBe(false)
  })

  async function isAnswered({ gateway }: Worker, servername: string): Promise<boolean> {
    const to = { port: gateway.tlsPort, host: '127.0.0.1', servername }
    const client = connectTls({ ...to, ALPNProtocols: ['acme-tls/1'], rejectUnauthorized: false })
    clients.push(client)
    return await new Promise((resolve) => {
      client.once('secureConnect', () => resolve(client.alpnProtocol === 'acme-tls/1'))
      client.once('error', () => resolve(false))
    })
  }
})

describe('the metrics of several gateways', () => {
  const pageOf = ({ gateway, peers }: Worker) =>
    withOtherWorkers(
      createGatewayMetrics(() => gateway.gateway.count(), peers),
      { others: peers.others, read: async (other) => (await peers.ask(other, 'metrics', {})).text },
    )

  it('are on one page, each with its number, and every metric is described once', async () => {
    const text = await pageOf(worker(0)).read()
    const visits = text.split('\n').filter((line) => line.includes('berth_gateway_visits'))
    expect(visits).toEqual([
      '# HELP berth_gateway_visits Visits under way',
      '# TYPE berth_gateway_visits gauge',
      'berth_gateway_visits{worker="0"} 0',
      'berth_gateway_visits{worker="1"} 0',
    ])
    expect(text).toContain('berth_gateway_worker_up{worker="1"} 1\n')
    const described = text.split('\n').filter((line) => line.startsWith('# TYPE'))
    expect(new Set(described).size).toBe(described.length)
  })

  it('name one that is down, and the health does too', async () => {
    const page = pageOf(worker(0))
    expect(await page.health()).toEqual({ isWell: true, parts: { workers: { 0: 'ok', 1: 'ok' } } })
    await stopWorker(worker(1))
    expect(await page.health()).toEqual({ isWell: false, parts: { workers: { 0: 'ok', 1: 'down' } } })
    expect(await page.read()).toContain('berth_gateway_worker_up{worker="1"} 0\n')
    workers[1] = await startWorker(1)
  })
})

describe('gateways on one port', () => {
  it('share its connections, and one that has ended gets none', async () => {
    await Promise.all(workers.map(stopWorker))
    const first = await startWorker(0, 0, true)
    workers = [first, await startWorker(1, first.gateway.tlsPort, true)]
    const server = await startServer(KEY)
    const sessions = []
    for (let count = 0; count < 24; count += 1) sessions.push(await beginSession(first, server.host))
    const counts = workers.map(({ gateway }) => gateway.gateway.count().visits)
    expect(Math.min(...counts)).toBeGreaterThan(0)
    expect(counts.reduce((sum, count) => sum + count)).toBe(24)
    await stopWorker(worker(1))
    // A program that another test starts now, from a thread of this process, keeps the port of the one that ended until it
    // executes (fork), and the kernel would give it connections.
    await expect.poll(() => listenersAt(first.gateway.tlsPort)).toBe(1)
    for (let count = 0; count < 24; count += 1) await beginSession(first, server.host)
    workers[1] = await startWorker(1)
  })

  /** How many sockets listen on the port, as the kernel says. */
  async function listenersAt(port: number): Promise<number> {
    const LISTEN = '0A'
    const address = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
    const sockets = (await readFile('/proc/net/tcp', 'utf8'))
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
    return sockets.filter(([, local, , state]) => local?.endsWith(address) && state === LISTEN).length
  }
})

it('limits are divided: together all gateways have them, and each at least one', () => {
  const divided = dividedLimits({ ...sessionLimits, visitsPerUnit: 1 }, 3)
  expect(divided).toMatchObject({ connections: 3334, visitsPerUnit: 1, headersMs: sessionLimits.headersMs })
  expect(dividedLimits(sessionLimits, 1)).toEqual(sessionLimits)
})
