// The metrics of the server: counters of events, and gauges that are read when the metrics are requested. Labels have
// a closed set of values, so their number is bounded and they identify no team.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { App } from '../app.ts'
import { unitStates } from '../contract/states.ts'
import { isolationClasses, type ReadyMachinesStatus } from '../engine/engine.ts'
import { SECOND } from '../lib/clock.ts'
import type { Observer } from '../lib/observer.ts'
import { cachedFor } from '../lib/concurrency/ttl-cache.ts'
import type { Backlog } from '../store/gauges.ts'
import { createRegistry } from './registry.ts'
import type { Metrics } from './serve.ts'
import { LOOK_MS, FRESH_MS, type Look, nothingKnown, lookAt } from './server-look.ts'

/** The gauges are read at most this often, however many clients ask. */
const LOOK_EVERY_MS = SECOND
/** From a thaw to a first image pull. */
const operationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const callBuckets = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]

export type ServerMetrics = {
  observer: Observer
  /** Returns the metrics that the observer updates and the gauges of the app. */
  of(app: App): Metrics
}

export function createServerMetrics(): ServerMetrics {
  const registry = createRegistry()
  return {
    observer: createObserver(registry),
    of: (app) => {
      const show = createGauges(registry)
      const look = cachedFor({ clock: app.clock, forMs: LOOK_EVERY_MS, withinMs: LOOK_MS }, () => lookAt(app))
      return {
        contentType: registry.contentType,
        read: async () => {
          show((await look()) ?? nothingKnown, app.clock.now())
          return await registry.metrics()
        },
        health: async () => healthOf((await look()) ?? nothingKnown, app.clock.now()),
      }
    },
  }
}

function createObserver(registry: Registry): Observer {
  const registers = [registry]
  const operations = new Histogram({
    name: 'berth_unit_operation_seconds',
    help: 'Lifecycle operations of units by result',
    labelNames: ['operation', 'class', 'tier', 'result'],
    buckets: operationBuckets,
    registers,
  })
  const calls = new Histogram({
    name: 'berth_api_request_seconds',
    help: 'Calls of the API and its pages by route; a stream lasts until it ends',
    labelNames: ['method', 'route', 'status'],
    buckets: callBuckets,
    registers,
  })
  const jobs = new Counter({
    name: 'berth_job_runs_total',
    help: 'Runs of the background jobs by result',
    labelNames: ['job', 'result'],
    registers,
  })
  const verified = new Counter({
    name: 'berth_ledger_verified_teams_total',
    help: 'Teams whose ledger was verified',
    registers,
  })
  const differences = new Counter({
    name: 'berth_ledger_differences_total',
    help: 'Sums of the ledger that differ from their parts: each is a bug',
    registers,
  })
  return {
    operationEnded: ({ operation, isolation, tier, result, ms }) =>
      operations.observe({ operation, class: isolation, tier, result }, ms / SECOND),
    callAnswered: ({ method, route, status, ms }) =>
      calls.observe(
        {
          // A caller of an unknown path also chooses the method.
          method: route === null ? 'any' : method,
          route: route ?? 'none',
          status: `${Math.floor(status / 100)}xx`,
        },
        ms / SECOND,
      ),
    jobEnded: (run) => jobs.inc(run),
    ledgerVerified: ({ differences: found }) => {
      verified.inc()
      differences.inc(found)
    },
  }
}

const MB = 1024 * 1024

/** A value that is unknown is left out instead of shown from an earlier read. */
function createGauges(registry: Registry): (look: Look, now: Date) => void {
  const gauge = <T extends string>(name: string, help: string, labelNames: T[] = []) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const database = gauge('berth_database_up', 'Whether the database answers')
  const engine = gauge(
    'berth_engine_up',
    "Whether the engine of the server's own host answers, or, where the server has none, any",
  )
  const hostStates = gauge('berth_host_state', '1 for the state that a host is in', ['host', 'state'])
  const hostsUp = gauge('berth_host_up', 'Whether the engine of a host answers', ['host'])
  const hostsAway = gauge('berth_host_away_seconds', 'Seconds since a host that is away has answered', [
    'host',
  ])
  const hostGateways = gauge('berth_host_gateway_up', 'Whether the gateway of another host is connected', [
    'host',
  ])
  const hostsWanted = gauge(
    'berth_hosts_wanted',
    'Hosts that the memory and disk in use, what is promised, and starts that wait call for',
  )
  const hostUnits = gauge('berth_host_units', 'Units of a host, where there are several', ['host'])
  const hostMemory = gauge('berth_host_available_memory_bytes', 'Memory that a host has to spare', ['host'])
  const hostClocks = gauge(
    'berth_host_clock_offset_seconds',
    "How far a host's clock is ahead of the server's",
    ['host'],
  )
  const hostCertificates = gauge(
    'berth_host_certificate_seconds',
    'Seconds until the first certificate of another host ends',
    ['host'],
  )
  const units = gauge('berth_units', 'Units by state and isolation class', ['state', 'class'])
  const ready = gauge('berth_ready_machines', 'Machines made ahead that wait for a create')
  const taken = gauge(
    'berth_ready_machine_creates',
    'Creates since the engine started, by whether a machine was ready for them',
    ['result'],
  )
  const heartbeat = gauge(
    'berth_heartbeat_age_seconds',
    'Seconds since the last heartbeat of a healthy service',
  )
  const meters = gauge(
    'berth_meter_lag_seconds',
    'Seconds of use not yet charged, of the open meter that was charged longest ago',
  )
  const backlogs = gauge('berth_backlog', 'Items waiting in a queue', ['queue'])
  const waiting = gauge('berth_backlog_age_seconds', 'Seconds that the oldest item of a queue has waited', [
    'queue',
  ])

  const showReady = (status: ReadyMachinesStatus | null) => {
    ready.remove()
    taken.reset()
    if (status === null) return
    ready.set(status.waiting)
    taken.set({ result: 'hit' }, status.hits)
    taken.set({ result: 'miss' }, status.misses)
  }

  return ({ gauges, hosts, hasOwn, wanted }, now) => {
    const local = hasOwn ? hosts[0] : undefined
    const secondsSince = (at: Date | null) => (at ? Math.max(0, now.getTime() - at.getTime()) / SECOND : 0)
    const showBacklog = (queue: string, { count, since }: Backlog) => {
      backlogs.set({ queue }, count)
      waiting.set({ queue }, secondsSince(since))
    }
    engine.set(anEngineAnswers({ hosts, hasOwn }) ? 1 : 0)
    hostsWanted.remove()
    if (wanted !== null) hostsWanted.set(wanted)
    for (const each of [
      hostStates,
      hostsUp,
      hostsAway,
      hostGateways,
      hostUnits,
      hostMemory,
      hostClocks,
      hostCertificates,
    ])
      each.reset()
    for (const { name: host, state, answers, awaySince, facts, gateway, units: count } of hosts) {
      hostStates.set({ host, state }, 1)
      if (count !== null) hostUnits.set({ host }, count)
      // It was given up, so what it does is of no concern.
      if (state === 'lost') continue
      hostsUp.set({ host }, answers ? 1 : 0)
      if (awaySince) hostsAway.set({ host }, secondsSince(awaySince))
      if (gateway !== null) hostGateways.set({ host }, gateway ? 1 : 0)
      if (facts.capacity) hostMemory.set({ host }, facts.capacity.availableMemoryMb * MB)
      hostClocks.set({ host }, facts.clockOffsetMs / SECOND)
      if (facts.certificatesEnd)
        hostCertificates.set({ host }, (facts.certificatesEnd.getTime() - now.getTime()) / SECOND)
    }
    database.set(gauges ? 1 : 0)
    showReady(local?.ready ?? null)
    for (const each of [heartbeat, meters]) each.remove()
    for (const each of [units, backlogs, waiting]) each.reset()
    if (gauges === null) return
    for (const state of unitStates.filter((each) => each !== 'destroyed')) {
      for (const isolation of isolationClasses) units.set({ state, class: isolation }, 0)
    }
    for (const { state, isolation, count } of gauges.units) units.set({ state, class: isolation }, count)
    if (gauges.heartbeatAt) heartbeat.set(secondsSince(gauges.heartbeatAt))
    meters.set(secondsSince(gauges.oldestMeterAt))
    showBacklog('mails', gauges.mails)
    showBacklog('payments', gauges.payments)
  }
}

/** Of a server without an engine, one of the others has to. */
function anEngineAnswers({ hosts, hasOwn }: Pick<Look, 'hosts' | 'hasOwn'>): boolean {
  return hasOwn
    ? (hosts[0]?.answers ?? false)
    : hosts.some(({ state, answers }) => state !== 'lost' && answers)
}

/** Another host that is away is named, and does not make the service unwell. */
function healthOf({ gauges, hosts, hasOwn }: Look, now: Date): { isWell: boolean; parts: object } {
  const at = gauges?.heartbeatAt ?? null
  const beats = at !== null && now.getTime() - at.getTime() < FRESH_MS
  const parts = { database: gauges !== null, engine: anEngineAnswers({ hosts, hasOwn }), heartbeat: beats }
  const members = hosts.filter(({ state }) => state !== 'lost')
  const named = members.map(({ name, answers, awaySince, gateway, units, classes }) => ({
    name,
    answers,
    ...(gateway === null ? {} : { gateway }),
    ...(classes === null ? {} : { classes }),
    ...(awaySince ? { awaySince, unitsThatCannotBeUsed: units } : {}),
  }))
  return { isWell: Object.values(parts).every(Boolean), parts: { ...parts, hosts: named } }
}
