// Serves visits to units, and the resolver for machines. Its database role only sees what routing needs; on a host without a
// database it asks the server.

import { once } from 'node:events'
import type { Server } from 'node:net'
import type { Address } from '../config.ts'
import { namesOf } from '../engine/oci/network/names.ts'
import { createEndpointPorts } from '../gateway/listen/endpoint-ports.ts'
import { type RoutingSource, routesOfDatabase, routesOfServer } from '../gateway/routing/routing-source.ts'
import { createEndpointRoutes } from '../gateway/routing/endpoint-routes.ts'
import { openCertificates } from '../gateway/certificates/current.ts'
import { type ResolverOptions, startResolver } from '../dns/resolver.ts'
import { systemUpstreams } from '../dns/upstream.ts'
import { withOnDemandTls } from '../gateway/certificates/on-demand.ts'
import { createGateway, type Gateway } from '../gateway/server.ts'
import { createLoopbacks } from '../gateway/sessions/loopbacks.ts'
import type { Door } from '../gateway/sessions/connect-to-unit.ts'
import { createWakeLeases } from '../gateway/server-link/wake-leases.ts'
import { connectToServer, type ServerClient } from '../gateway/server-link/client.ts'
import { systemClock } from '../lib/clock.ts'
import { followEgressLink } from '../lib/egress/link-client.ts'
import { createTelling } from '../lib/egress/telling.ts'
import { createGatewayMetrics, withOtherWorkers } from '../metrics/gateway-metrics.ts'
import { serveMetrics } from '../metrics/serve.ts'
import { dividedLimits, sessionLimits } from '../gateway/sessions/session-limits.ts'
import { createPeers, type Peers } from '../gateway/workers/peers.ts'
import { followTicketKeys, type TicketKeys } from '../gateway/workers/ticket-keys.ts'
import { openDatabase, POOL_SIZE } from '../store/db.ts'
import {
  callersSocketOf,
  certificateFileIn,
  doorSocketOf,
  EGRESS_PORTS,
  egressSocketsOf,
  gatewayDirOf,
  type GatewayWorker,
  identityFileIn,
  RESOLVER_PORT,
  wakeSocketOf,
} from './channel.ts'
import { listenForCallers } from '../gateway/handover/callers.ts'
import { getAccount } from '../lib/system-users.ts'
import { openHandover } from './gateway-handover.ts'
import { type FollowedIdentity, followIdentity } from './identity.ts'
import type { ProcessContext, ProcessMain } from './run-process.ts'

export const gatewayProcess: ProcessMain = async (context) => {
  const { config, runDir, stateDir, databaseUrl, worker, log } = context
  const clock = systemClock
  const link = await openLink({ config, runDir, stateDir, databaseUrl, worker, log })
  const { server, source } = link
  const workers = worker && (await openWorker(worker, { runDir, log }))
  const { peers } = workers ?? {}
  // Of several gateways the first one has what there can only be one of.
  const isFirst = (worker?.number ?? 0) === 0
  const names = isFirst ? await serveNames(context, source) : null
  const use = createWakeLeases({ server, ...(worker && { worker: worker.number }), clock, log })
  const routes = createEndpointRoutes({ findAll: source.findRoutes, clock })
  const followed = await openCertificates({ file: certificateFileIn(stateDir), clock, log })
  const shared = { ...(peers && { peers }) }
  const certificates = await withOnDemandTls(config, { followed, stateDir, routes, clock, log, ...shared })
  const range = config.gatewayPorts
  const findAll = async () => (range ? await source.findPorts(range) : [])
  const ports = createEndpointPorts({ host: config.gatewayTls.host, findAll, clock, log })
  const limits = dividedLimits(sessionLimits, worker?.of ?? 1)
  const isShared = worker !== null
  const handover = openHandover(config, link.identity, { server, limits, isShared, clock, log })
  const gateway = createGateway({
    certificates,
    domain: config.domain,
    door: openDoor(config.serverLink ? null : doorSocketOf(runDir), link),
    ports,
    routes,
    waker: use.waker,
    activity: use.activity,
    limits,
    ...(handover && { handover: handover.handovers }),
    ...shared,
    ...(workers && { tickets: workers.tickets }),
    clock,
    log,
  })
  const metrics = createGatewayMetrics(() => gateway.count(), worker)
  peers?.answer('metrics', async () => ({ text: await metrics.read() }))
  await peers?.open()
  await Promise.all([
    listen(gateway.http, config.gatewayHttp, isShared),
    listen(gateway.tls, config.gatewayTls, isShared),
    listen(gateway.mysql, config.gatewayMysql, isShared),
    handover?.listen(gateway),
  ])
  const callers = isFirst && !config.serverLink ? await takeCallers(gateway, context) : null
  if (range && isFirst) ports.open(gateway)
  const all = peers
    ? withOtherWorkers(metrics, { others: peers.others, read: (at) => readOther(peers, at) })
    : metrics
  const shown = isFirst ? await serveMetrics(config.gatewayMetrics, { metrics: all, log }) : null
  return {
    stop: async () => {
      await shown?.close()
      await callers?.close()
      await ports.stop()
      await handover?.stop()
      await gateway.close()
      await certificates.stop()
      await use.stop()
      await names?.close()
      await workers?.stop()
      await link.close()
    },
  }
}

async function takeCallers(gateway: Gateway, { runDir, log }: ProcessContext): Promise<Stoppable> {
  const { gid } = await getAccount('berth')
  return await listenForCallers(gateway, { socketPath: callersSocketOf(runDir), gid, log })
}

type Stoppable = { close: () => Promise<unknown> }

/** The resolvers that units ask. */
async function serveNames(
  { instance, runDir, log }: ProcessContext,
  source: RoutingSource,
): Promise<Stoppable> {
  const clock = systemClock
  const resolving: Omit<ResolverOptions, 'port'> = {
    address: namesOf(instance).gateway,
    lookup: (askerAddress, name) => source.findAddress({ askerAddress, name }),
    upstreams: systemUpstreams(),
    log,
    clock,
  }
  const resolver = await startResolver({ ...resolving, port: RESOLVER_PORT })
  const rules = followEgressLink(egressSocketsOf(runDir).names)
  const telling = createTelling(() => rules)
  const egress = { ...rules, note: telling.note }
  const restricted = await startResolver({ ...resolving, port: EGRESS_PORTS.dns, egress })
  return {
    close: async () => {
      await Promise.all([resolver.close(), restricted.close(), telling.close()])
      await rules.close()
    },
  }
}

type Worker = { peers: Peers; tickets: TicketKeys; stop(): Promise<void> }

/** What one of several gateways has in common with the others. */
async function openWorker(
  { number, of, tickets: secret }: GatewayWorker,
  { runDir, log }: Pick<ProcessContext, 'runDir' | 'log'>,
): Promise<Worker> {
  const clock = systemClock
  const peers = createPeers({ number, of, directory: gatewayDirOf(runDir), clock, log })
  const tickets = followTicketKeys(secret, { clock, log })
  return {
    peers,
    tickets,
    stop: async () => {
      await peers.stop()
      await tickets.stop()
    },
  }
}

async function readOther(peers: Peers, worker: number): Promise<string> {
  return (await peers.ask(worker, 'metrics', {})).text
}

/** Of several gateways, which look routes up in groups: Postgres has connections for one service. */
const MIN_CONNECTIONS = 2

function openDoor(socketPath: string | null, { server, source }: Pick<Link, 'server' | 'source'>): Door {
  return {
    socketPath,
    findNow: async (name) => (await source.findRoutes([name]))[0] ?? null,
    loopbacks: createLoopbacks(
      async (unitId, port) => (await server.ask('loopback', { unitId, port })).port,
      systemClock,
    ),
  }
}

type Link = {
  server: ServerClient
  source: RoutingSource
  /** In the fleet; null: there are no other hosts to hand visits over to. */
  identity: FollowedIdentity | null
  close(): Promise<void>
}

/** On the server's own host: its socket, and the database. On another one: the server alone, by TLS. */
async function openLink({
  config,
  runDir,
  stateDir,
  databaseUrl,
  worker,
  log,
}: Pick<ProcessContext, 'config' | 'runDir' | 'stateDir' | 'databaseUrl' | 'worker' | 'log'>): Promise<Link> {
  const clock = systemClock
  if (config.serverLink) {
    const { host, port, identityFile } = config.serverLink
    const identity = await followIdentity(identityFile, { log, clock })
    const address = { host, port, identity: identity.current, settings: config }
    const server = connectToServer({ address, clock })
    const source = routesOfServer(server, { everywhere: config.gatewayHandover !== null })
    return { server, source, identity, close: identity.stop }
  }
  const db = openDatabase(
    databaseUrl,
    log,
    null,
    Math.max(MIN_CONNECTIONS, Math.floor(POOL_SIZE / (worker?.of ?? 1))),
  )
  const server = connectToServer({ address: { socketPath: wakeSocketOf(runDir) }, clock })
  const identity = config.gatewayHandover
    ? await followIdentity(identityFileIn(stateDir), { log, clock })
    : null
  const close = async () => {
    await identity?.stop()
    await db.destroy()
  }
  return { server, source: routesOfDatabase(db), identity, close }
}

/** With several gateways, the kernel gives each connection to one of those that listen (SO_REUSEPORT). */
async function listen(server: Server, { host, port }: Address, isShared: boolean): Promise<void> {
  server.listen({ host, port, ...(isShared && { reusePort: true }) })
  await once(server, 'listening')
}
