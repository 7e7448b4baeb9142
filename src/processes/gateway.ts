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
import { createGateway } from '../gateway/server.ts'
import { createWakeLeases } from '../gateway/server-link/wake-leases.ts'
import { connectToServer, type ServerClient } from '../gateway/server-link/client.ts'
import { systemClock } from '../lib/clock.ts'
import { followEgressLink } from '../lib/egress/link-client.ts'
import { createTelling } from '../lib/egress/telling.ts'
import { createGatewayMetrics } from '../metrics/gateway-metrics.ts'
import { serveMetrics } from '../metrics/serve.ts'
import { openDatabase } from '../store/db.ts'
import { certificateFileIn, EGRESS_PORTS, egressSocketsOf, RESOLVER_PORT, wakeSocketOf } from './channel.ts'
import { followIdentity } from './identity.ts'
import type { ProcessContext, ProcessMain } from './run-process.ts'

export const gatewayProcess: ProcessMain = async ({
  config,
  instance,
  runDir,
  stateDir,
  databaseUrl,
  log,
}) => {
  const clock = systemClock
  const link = await openLink({ config, runDir, databaseUrl, log })
  const { server, source } = link
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
  const use = createWakeLeases({ server, clock, log })
  const routes = createEndpointRoutes({ findAll: source.findRoutes, clock })
  const followed = await openCertificates({ file: certificateFileIn(stateDir), clock, log })
  const certificates = await withOnDemandTls(config, { followed, stateDir, routes, clock, log })
  const range = config.gatewayPorts
  const findAll = async () => (range ? await source.findPorts(range) : [])
  const ports = createEndpointPorts({ host: config.gatewayTls.host, findAll, clock, log })
  const gateway = createGateway({
    certificates,
    domain: config.domain,
    ports,
    routes,
    waker: use.waker,
    activity: use.activity,
    clock,
    log,
  })
  await Promise.all([
    listen(gateway.http, config.gatewayHttp),
    listen(gateway.tls, config.gatewayTls),
    listen(gateway.mysql, config.gatewayMysql),
  ])
  if (range) ports.open(gateway)
  const metrics = createGatewayMetrics(() => gateway.count())
  const shown = await serveMetrics(config.gatewayMetrics, { metrics, log })
  return {
    stop: async () => {
      await shown.close()
      await ports.stop()
      await gateway.close()
      await certificates.stop()
      await use.stop()
      await Promise.all([resolver.close(), restricted.close(), telling.close()])
      await rules.close()
      await link.close()
    },
  }
}

type Link = { server: ServerClient; source: RoutingSource; close(): Promise<void> }

/** On the server's own host: its socket, and the database. On another one: the server alone, by TLS. */
async function openLink({
  config,
  runDir,
  databaseUrl,
  log,
}: Pick<ProcessContext, 'config' | 'runDir' | 'databaseUrl' | 'log'>): Promise<Link> {
  const clock = systemClock
  if (config.serverLink) {
    const { host, port, identityFile } = config.serverLink
    const identity = await followIdentity(identityFile, { log, clock })
    const address = { host, port, identity: identity.current, settings: config }
    const server = connectToServer({ address, clock })
    return { server, source: routesOfServer(server), close: identity.stop }
  }
  const db = openDatabase(databaseUrl, log)
  const server = connectToServer({ address: { socketPath: wakeSocketOf(runDir) }, clock })
  return { server, source: routesOfDatabase(db), close: async () => await db.destroy() }
}

async function listen(server: Server, { host, port }: Address): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}
