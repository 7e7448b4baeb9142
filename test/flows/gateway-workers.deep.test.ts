// Two gateway processes on one host (decisions/gateway.md): a unit is woken once, kept awake and put to sleep whichever of
// them its visitors come to, a query is cancelled from either, and one that is killed takes nothing with it but its own
// connections. On the server's own host, and in the deep tier also on one that has joined, whose gateways ask the server
// (decisions/joining.md).

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { sessionLimits } from '../../src/gateway/sessions/session-limits.ts'
import { eventually } from '../support/berth.ts'
import { places, useGateways } from '../support/gateways.ts'
import { withDatabase } from '../support/host-invariants.ts'
import { isDeep } from '../support/part-of.ts'
import { freeze, type Published, publish, unitOf } from '../support/published.ts'

const run = promisify(execFile)
const PASSWORD = 'of both'
/** Longer than any of these tests: on a slow machine a query of a minute had ended by itself before it was looked at. */
const LONG_QUERY = 'select pg_sleep(3600)'
/** A visit is reported after a tenth of a second. */
const REPORTED_WITHIN_MS = 2000

describe.each(isDeep ? places : places.slice(0, 1))('on %s, two gateway processes', (place) => {
  const gateways = useGateways(place, 36, { BERTH_FROZEN_FOR: 'never' })
  const { berth } = gateways
  let web: Published
  let shop: Published
  let clients: pg.Client[] = []

  beforeAll(async () => {
    web = await publish(
      berth,
      { name: 'web', image: 'berth.local/nginx:1.22', ports: [80] },
      { port: 80, protocol: 'http' },
    )
    const env = { POSTGRES_PASSWORD: PASSWORD }
    const database = { name: 'shop', image: 'berth.local/postgres:15', ports: [5432], env }
    shop = await publish(berth, database, { port: 5432, protocol: 'postgres' })
    // PostgreSQL initializes its cluster first.
    await eventually(async () => await (await connect()).end())
    await eventually(async () => expect(await visit()).toBe(200))
  })
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => {})))
    clients = []
  })

  /** On a connection of its own, which the kernel gives to either gateway. */
  function visit(): Promise<number> {
    const { host, port } = web
    return new Promise((resolve, reject) => {
      const to = {
        host: gateways.address,
        port,
        servername: host,
        headers: { host },
        ca: gateways.ca,
        agent: false,
      }
      request(to, (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode ?? 0))
      })
        .on('error', reject)
        .end()
    })
  }

  async function connect(): Promise<pg.Client> {
    const to = { host: gateways.address, port: shop.port, user: 'postgres', database: 'postgres' }
    const ssl = { ca: gateways.ca, servername: shop.host }
    const client = new pg.Client({ ...to, password: PASSWORD, ssl })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }

  /** Until each gateway has at least one. A connection of before, which is still being closed, must not count as one. */
  async function connectToBoth(): Promise<pg.Client[]> {
    await expect.poll(async () => sum(await connectionsOfEach())).toBe(0)
    const open: pg.Client[] = []
    do open.push(await connect())
    while (Math.min(...(await connectionsOfEach())) === 0)
    return open
  }

  /** Of TCP alone, which the gateway may end. */
  async function openSocket(): Promise<Socket> {
    const socket = connectTcp({ host: gateways.address, port: web.port })
    socket.on('error', () => {})
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
    return socket.resume()
  }

  async function connectionsOfEach(): Promise<number[]> {
    const text = await (await fetch(`${gateways.metrics}/metrics`)).text()
    return [...text.matchAll(/^berth_gateway_connections\{worker="\d"\} (\d+)$/gm)].map(([, n]) => Number(n))
  }

  async function gatewayPids(): Promise<number[]> {
    return await gateways.host.pidsOf('gateway')
  }

  /** The gateway that serves the metrics is the first one. */
  async function firstPid(): Promise<number> {
    const listed = await gateways.run('ss', '-ltnpH', `sport = :${new URL(gateways.metrics).port}`)
    return Number(/pid=(\d+)/.exec(listed)?.[1])
  }

  const health = async () => await (await fetch(`${gateways.metrics}/healthz`)).json()

  const sum = (all: number[]) => all.reduce((total, each) => total + each, 0)

  const bothWell = { status: 'ok', workers: { 0: 'ok', 1: 'ok' } }

  async function runsBegun({ unit }: Published): Promise<number> {
    const rows = await withDatabase(await berth.instance(), (store) =>
      store.selectFrom('meters').select('unit_id').where('unit_id', '=', unit.id).execute(),
    )
    return rows.length
  }

  const asksToSleep = async ({ unit }: Published) =>
    (await berth.call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '10m', now: true })).status

  /** Begins long queries at both, once both have reported them: a unit that is asked to sleep before that sleeps. */
  async function queryAtBoth() {
    return await eventually(async () => {
      const open = await connectToBoth()
      const asking = open.map((client) =>
        client.query(LONG_QUERY).then(
          () => 'ended',
          () => 'broken',
        ),
      )
      await delay(REPORTED_WITHIN_MS)
      if ((await asksToSleep(shop)) === 409) return { open, asking }
      await Promise.all(open.map((client) => client.end().catch(() => {})))
      throw new Error('the queries were not reported yet')
    }, 60_000)
  }

  it('run, share the connections of visitors, and are both well', async () => {
    expect(await gatewayPids()).toHaveLength(2)
    await connectToBoth()
    expect(await connectionsOfEach()).toHaveLength(2)
    expect(await health()).toEqual(bothWell)
  })

  it('wake a unit once for many visits', async () => {
    await freeze(berth, web.unit)
    const before = await runsBegun(web)
    const statuses = await Promise.all(Array.from({ length: 200 }, visit))
    expect(new Set(statuses)).toEqual(new Set([200]))
    await expect.poll(async () => (await unitOf(berth, web.unit)).state).toBe('running')
    expect(await runsBegun(web)).toBe(before + 1)
  })

  it('resume a session of TLS that began at either', async () => {
    const greet = async (session?: Buffer) => {
      const to = { host: gateways.address, port: web.port, servername: web.host, ca: gateways.ca }
      const client = connectTls({ ...to, maxVersion: 'TLSv1.2', ...(session && { session }) })
      const [ticket] = await new Promise<[Buffer, void]>((resolve, reject) => {
        client.once('error', reject)
        client.once('session', (told: Buffer) => client.end(() => resolve([told, undefined])))
        client.once('secureConnect', () => {
          if (client.isSessionReused()) client.end(() => resolve([session ?? Buffer.alloc(0), undefined]))
        })
      })
      return { ticket, isReused: client.isSessionReused() }
    }
    const { ticket } = await greet()
    for (let times = 0; times < 16; times += 1) expect((await greet(ticket)).isReused).toBe(true)
  })

  it('cancel a query by psql’s request, at whichever of them that arrives', async () => {
    for (let times = 0; times < 12; times += 1) {
      const tls = `sslmode=verify-full&sslrootcert=${gateways.caFile}&hostaddr=${gateways.address}`
      const url = `${shop.url.replace('://', '://postgres@')}/postgres?${tls}`
      const args = [url, '--no-psqlrc', '--command=select pg_sleep(60)']
      const asking = run('psql', args, { env: { ...process.env, PGPASSWORD: PASSWORD } }).catch(
        ({ stderr }: { stderr: string }) => stderr,
      )
      const watching = await connect()
      const active = "select 1 from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'"
      await expect.poll(async () => (await watching.query(active)).rowCount, { timeout: 20_000 }).toBe(1)
      await watching.end()
      process.kill(await psqlPid(), 'SIGINT')
      expect(await asking).toContain('canceling statement due to user request')
    }

    async function psqlPid(): Promise<number> {
      return Number((await run('pgrep', ['-f', `${shop.host}.*pg_sleep`])).stdout.trim().split('\n')[0])
    }
  })

  it('keep a unit awake until the last query at either has ended', async () => {
    const { open, asking } = await queryAtBoth()
    const last = open.pop()
    await Promise.all(open.map((client) => client.end()))
    expect(await asksToSleep(shop)).toBe(409)
    await last?.end()
    await Promise.all(asking)
    await eventually(async () => expect(await asksToSleep(shop)).toBe(200))
    expect((await unitOf(berth, shop.unit)).state).toBe('sleeping')
  })

  it('together allow a visitor as many connections as one gateway does, and refuse the others', async () => {
    const limit = sessionLimits.connectionsPerPeer
    const sockets = await Promise.all(Array.from({ length: limit + 500 }, openSocket))
    try {
      // It is refused once the gateway that the kernel gave it to has its part.
      const isDone = () => sockets.filter((socket) => !socket.destroyed).length <= limit
      await expect.poll(isDone, { timeout: 20_000 }).toBe(true)
      await expect.poll(async () => sum(await connectionsOfEach())).toBeGreaterThan(limit * 0.95)
      expect(sum(await connectionsOfEach())).toBeLessThanOrEqual(limit)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
    await eventually(async () => expect(await visit()).toBe(200))
  })

  it.each(['first', 'second'] as const)(
    'serve when the %s is killed, which is restarted, and whose visits no longer keep a unit awake',
    async (which) => {
      const { open, asking } = await queryAtBoth()
      const first = await firstPid()
      const [killed] = (await gatewayPids()).filter((pid) => (pid === first) === (which === 'first'))
      process.kill(killed ?? 0, 'SIGKILL')
      expect(await Promise.race(asking)).toBe('broken')
      // One that is in its queue is lost, for as long as it has not ended; after that each visit is served.
      await expect.poll(() => existsSync(`/proc/${killed}`)).toBe(false)
      await eventually(async () => expect(await visit()).toBe(200))
      for (let times = 0; times < 20; times += 1) expect(await visit()).toBe(200)
      await eventually(async () => expect(await health()).toEqual(bothWell))
      const alive = await Promise.race([
        Promise.all(asking).then(() => false),
        new Promise<true>((resolve) => setImmediate(() => resolve(true))),
      ])
      expect(alive, 'sessions at the other one go on').toBe(true)
      await Promise.all(open.map((client) => client.end().catch(() => {})))
      await eventually(async () => expect(await asksToSleep(shop)).toBe(200))
      expect(await gatewayPids()).toHaveLength(2)
      await eventually(async () => await (await connect()).end())
    },
  )
})
