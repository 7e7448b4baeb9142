// What the operator’s metrics collector reads: correct numbers after real operations, and no data about users.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeInvite, makeKey, makeSharedTeam, makeUnit } from '../../test/support/make.ts'
import { type Service, startService } from '../../test/support/service.ts'
import { createApp } from '../app.ts'
import { createFleet } from '../engine/fleet.ts'
import { chargeMeters } from '../domain/billing/charge.ts'
import { verifyLedger } from '../domain/billing/verify-ledger.ts'
import { reconcileMachines } from '../domain/units/reconcile.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { openDatabase } from '../store/db.ts'
import { createGatewayMetrics } from './gateway-metrics.ts'
import { createServerMetrics } from './server-metrics.ts'
import { type Metrics, serveMetrics, type ShownMetrics } from './serve.ts'

const own = { host: '127.0.0.1', port: 0 }

let service: Service
let shown: ShownMetrics
let team: { teamId: string; key: string; cookie: string }

beforeAll(async () => {
  const metrics = createServerMetrics()
  service = await startService({ observer: metrics.observer })
  shown = await serveMetrics(own, { metrics: metrics.of(service.app), log: service.app.log })
  const { id: teamId, owner } = await makeSharedTeam(service)
  const { secret: key } = await makeKey(service, { teamId, userId: owner.userId })
  team = { teamId, key, cookie: owner.cookie }
})
afterAll(async () => {
  await shown.close()
  await service.close()
})

type Sample = { name: string; labels: Record<string, string>; value: number }

const get = async (path: string, method = 'GET', port = shown.port) =>
  await fetch(`http://127.0.0.1:${port}${path}`, { method })

/** Parses the Prometheus text format; throws for a malformed line. */
async function scrape(port = shown.port): Promise<Sample[]> {
  // Metrics are cached for a second.
  service.clock.advance(2000)
  const answer = await get('/metrics', 'GET', port)
  expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4')
  const lines = (await answer.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name, labels, value] = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`no sample: ${line}`)
    const pairs = [...(labels ?? '').matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)]
    const number = value === '+Inf' ? Infinity : Number(value)
    return { name, labels: Object.fromEntries(pairs.map(([, k = '', v = '']) => [k, v])), value: number }
  })
}

/** Returns the sum of the samples with these labels, or null if there are none. */
async function valueOf(name: string, labels: Record<string, string> = {}): Promise<number | null> {
  const found = (await scrape()).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0)
}

describe('the metrics', () => {
  it('count API calls by route and unit operations by class and tier', async () => {
    const { key } = team
    const { id } = await makeUnit(service, { key }, { name: 'canary-unit' })
    await makeUnit(service, { key })
    await service.call('POST', `/v1/units/${id}/sleep`, { key, body: { sleep: '1h', now: true } })
    await service.call('POST', `/v1/units/${id}/exec`, { key, body: { cmd: ['true'] } })
    await service.call('POST', `/v1/units/${id}/stop`, { key })
    await service.call('POST', `/v1/units/${id}/start`, { key })
    await service.call('GET', `/v1/units/${id}x`, { key })
    await service.call('GET', '/v1/nothing/of/ours', { key })

    const operations = async (operation: string, tier: string) =>
      await valueOf('berth_unit_operation_seconds_count', {
        operation,
        tier,
        class: 'gvisor',
        result: 'success',
      })
    expect(await operations('create', 'cold')).toBe(2)
    expect(await operations('wake', 'frozen')).toBe(1)
    expect(await operations('start', 'cold')).toBe(1)
    expect(await operations('stop', 'none')).toBe(1)
    expect(await operations('wake', 'cold')).toBeNull()
    const calls = async (method: string, route: string, status: string) =>
      await valueOf('berth_api_request_seconds_count', { method, route, status })
    expect(await calls('POST', '/v1/units', '2xx')).toBe(2)
    expect(await calls('GET', '/v1/units/{id}', '4xx')).toBe(1)
    expect(await calls('any', 'none', '4xx')).toBe(1)
    expect(await valueOf('berth_units', { state: 'running', class: 'gvisor' })).toBe(2)
    expect(await valueOf('berth_units', { state: 'sleeping' })).toBe(0)
  })

  it('count an operation that fails as a failure', async () => {
    service.engine.fail('start', 'start_failed')
    const body = { spec: { name: 'fails', image: 'node:22' } }
    expect((await service.call('POST', '/v1/units', { key: team.key, body })).status).toBe(502)
    expect(
      await valueOf('berth_unit_operation_seconds_count', { operation: 'create', result: 'failure' }),
    ).toBe(1)
    expect(await valueOf('berth_units', { state: 'error' })).toBe(1)
  })

  it('report heartbeat age, meter lag, backlogs, job runs and process figures', async () => {
    await reconcileMachines(service.app)
    await chargeMeters(service.app)
    expect(await valueOf('berth_heartbeat_age_seconds')).toBeLessThan(30)
    expect(await valueOf('berth_meter_lag_seconds')).toBeLessThan(30)
    service.clock.advance(HOUR)
    expect(await valueOf('berth_engine_up')).toBe(1)
    expect(await valueOf('berth_host_up')).toBe(1)
    expect(await valueOf('berth_database_up')).toBe(1)
    expect(
      await valueOf('berth_job_runs_total', { job: 'sleep idle units', result: 'success' }),
    ).toBeGreaterThan(0)
    expect(await valueOf('process_resident_memory_bytes')).toBeGreaterThan(1e6)
    expect(await valueOf('nodejs_eventloop_lag_p99_seconds')).not.toBeNull()
    expect(await valueOf('berth_backlog', { queue: 'payments' })).toBe(0)
  })

  it('count differences found in the ledger', async () => {
    const { db } = service.app
    service.clock.advance(2 * DAY)
    await reconcileMachines(service.app)
    await chargeMeters(service.app)
    const before = (await valueOf('berth_ledger_differences_total')) ?? 0
    await db.updateTable('balances').set({ nano_cents: 42n, recounted_at: null }).execute()
    await verifyLedger(service.app)
    expect(await valueOf('berth_ledger_verified_teams_total')).toBeGreaterThan(0)
    expect(await valueOf('berth_ledger_differences_total')).toBeGreaterThan(before)
  })

  it('have labels from closed sets and contain nothing from requests, users or units', async () => {
    const email = 'canary@example.test'
    await makeInvite(service, { ...team, email })
    const { key, teamId } = team
    const before = (await scrape()).length
    for (let count = 0; count < 30; count += 1) {
      await service.fetch('GET', `/v1/canary-${count}`, { key })
      await service.fetch('GET', `/canary/%${count}`, { key })
      await service.fetch('PROPFIND', `/canary-${count}`, { key })
    }
    const samples = await scrape()
    // The calls above used known routes or none, so they add few time series.
    expect(samples.length - before).toBeLessThan(40)
    const said = JSON.stringify(samples.map(({ labels }) => labels))
    expect(said).not.toMatch(new RegExp(`canary|${teamId}|unit_|team_|cred_|user_|@|berth_live`))
    const names = new Set(
      samples.filter(({ name }) => name.startsWith('berth_')).flatMap(({ labels }) => Object.keys(labels)),
    )
    expect([...names].toSorted()).toEqual([
      'class',
      'host',
      'job',
      'le',
      'method',
      'operation',
      'queue',
      'result',
      'route',
      'state',
      'status',
      'tier',
    ])
  })
})

describe('the metrics address', () => {
  it('serves only /metrics and /healthz, and the API serves neither', async () => {
    for (const path of ['/metrics', '/healthz']) {
      expect((await service.fetch('GET', path)).status).toBe(404)
      expect((await get(path)).status).toBe(200)
      expect((await get(path, 'POST')).status).toBe(404)
    }
    expect((await get('/v1/units')).status).toBe(404)
    expect((await get('/metrics/../v1/me')).status).toBe(404)
  })

  it('reports the health of database, engine and heartbeat', async () => {
    await reconcileMachines(service.app)
    service.clock.advance(2000)
    const answer = await get('/healthz')
    expect([answer.status, await answer.json()]).toEqual([
      200,
      {
        status: 'ok',
        database: true,
        engine: true,
        heartbeat: true,
        hosts: [
          {
            name: 'first',
            answers: true,
            classes: { gvisor: expect.any(String) as string, runc: expect.any(String) as string },
          },
        ],
      },
    ])
  })

  it('still reports process figures while database and engine are unavailable, and no stale numbers', async () => {
    const away = createServerMetrics()
    const db = openDatabase('postgresql://127.0.0.1:1/nothing', silentLog)
    const engine = {
      ...service.engine,
      capacity: async () => await Promise.reject(new Error('away')),
    }
    const fleet = createFleet({ ...service.app.fleet.local(), engine })
    const app = createApp({ ...service.app, clock: service.clock, db, fleet })
    const alone = await serveMetrics(own, { metrics: away.of(app), log: silentLog })
    try {
      const samples = new Map((await scrape(alone.port)).map(({ name, value }) => [name, value]))
      expect(samples.get('berth_database_up')).toBe(0)
      expect(samples.get('berth_engine_up')).toBe(0)
      expect(samples.get('process_resident_memory_bytes')).toBeGreaterThan(1e6)
      for (const name of ['berth_units', 'berth_meter_lag_seconds', 'berth_backlog'])
        expect(samples.has(name)).toBe(false)
      const health = await get('/healthz', 'GET', alone.port)
      expect([health.status, await health.json()]).toMatchObject([503, { status: 'unwell', database: false }])
    } finally {
      await alone.close()
      await db.destroy()
    }
  })

  it('says of other hosts whether their gateway is connected, which makes none unwell', async () => {
    const { engine } = service
    const fleet = createFleet(service.app.fleet.local(), () => ({ engine, cut: () => {} }))
    const east = { id: 'host_east', name: 'east', region: null, address: '10.0.0.2:7075' }
    fleet.setAway(fleet.open(east, service.clock.now()), null)
    const config = { ...service.app.config, hostsAddress: { host: '127.0.0.1', port: 1 } }
    const app = createApp({ ...service.app, clock: service.clock, config, fleet })
    const metrics = createServerMetrics().of(app)
    const hosts = async () => (await metrics.health()).parts
    const first = { name: 'first', answers: true }
    const named = { name: 'east', answers: true, gateway: false }
    expect(await hosts()).toMatchObject({ hosts: [first, named] })
    app.connectedGateways.add('host_east')
    service.clock.advance(2 * MINUTE)
    expect(await hosts()).toMatchObject({ hosts: [first, { ...named, gateway: true }] })
  })

  it('of a server without an engine an engine answers while that of any host does', async () => {
    const fleet = createFleet(null, () => ({ engine: service.engine, cut: () => {} }))
    const app = createApp({ ...service.app, clock: service.clock, fleet })
    const metrics = createServerMetrics().of(app)
    const parts = async () => {
      service.clock.advance(2 * SECOND)
      return (await metrics.health()).parts
    }
    expect(await parts()).toMatchObject({ engine: false, hosts: [] })
    const east = { id: 'host_east', name: 'east', region: null, address: '10.0.0.2:7075' }
    const host = fleet.open(east, service.clock.now())
    expect(await parts()).toMatchObject({ engine: false, hosts: [{ name: 'east', answers: false }] })
    fleet.setAway(host, null)
    expect(await parts()).toMatchObject({ engine: true, hosts: [{ name: 'east', answers: true }] })
  })

  it('shows the state of each host, also of one that was given up, which healthz no longer names', async () => {
    const { engine } = service
    const fleet = createFleet(service.app.fleet.local(), () => ({ engine, cut: () => {} }))
    const names = ['drained', 'away', 'lost']
    const [drained, , lost] = names.map((name, index) =>
      fleet.open(
        { id: `host_${name}`, name, region: null, address: `10.0.0.${index + 2}:7075` },
        service.clock.now(),
      ),
    )
    if (!drained || !lost) throw new Error('a host is missing')
    fleet.setAway(drained, null)
    drained.isDraining = true
    fleet.giveUp(lost)
    const app = createApp({ ...service.app, clock: service.clock, fleet })
    const metrics = createServerMetrics().of(app)
    const alone = await serveMetrics(own, { metrics, log: silentLog })
    try {
      const samples = await scrape(alone.port)
      const states = samples.filter(({ name, value }) => name === 'berth_host_state' && value === 1)
      expect(states.map(({ labels }) => labels)).toEqual([
        { host: 'first', state: 'ready' },
        { host: 'drained', state: 'draining' },
        { host: 'away', state: 'away' },
        { host: 'lost', state: 'lost' },
      ])
      const up = samples.filter(({ name }) => name === 'berth_host_up')
      expect(up.map(({ labels }) => labels['host'])).toEqual(['first', 'drained', 'away'])
      const { hosts } = (await metrics.health()).parts as { hosts: { name: string }[] }
      expect(hosts.map(({ name }) => name)).toEqual(['first', 'drained', 'away'])
    } finally {
      await alone.close()
    }
  })

  it('is unhealthy when the last heartbeat is more than a minute old', async () => {
    const still = createServerMetrics()
    const late = () => new Date(service.clock.now().getTime() + 5 * MINUTE)
    const app = createApp({ ...service.app, clock: { ...service.clock, now: late } })
    const metrics: Metrics = still.of(app)
    expect(await metrics.health()).toMatchObject({
      isWell: false,
      parts: { heartbeat: false, database: true },
    })
  })

  it('of the gateway reports its connections and visits', async () => {
    const metrics = createGatewayMetrics(() => ({ connections: 3, visits: 2 }))
    const gateway = await serveMetrics(own, { metrics, log: silentLog })
    try {
      const samples = new Map((await scrape(gateway.port)).map(({ name, value }) => [name, value]))
      expect(samples.get('berth_gateway_connections')).toBe(3)
      expect(samples.get('berth_gateway_visits')).toBe(2)
      expect(samples.has('nodejs_eventloop_lag_seconds')).toBe(true)
    } finally {
      await gateway.close()
    }
  })
})
