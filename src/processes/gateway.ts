// Serves visits to units, and the resolver for machines. Its database role only sees what routing needs.

import { once } from 'node:events'
import type { Server } from 'node:net'
import type { Address } from '../config.ts'
import { namesOf } from '../engine/oci/network/names.ts'
import { createEndpointPorts } from '../gateway/listen/endpoint-ports.ts'
import { createEndpointRoutes } from '../gateway/routing/endpoint-routes.ts'
import { openCertificates } from '../gateway/certificates/current.ts'
import { type ResolverOptions, startResolver } from '../dns/resolver.ts'
import { systemUpstreams } from '../dns/upstream.ts'
import { withOnDemandTls } from '../gateway/certificates/on-demand.ts'
import { createGateway } from '../gateway/server.ts'
import { createWakeLeases } from '../gateway/server-link/wake-leases.ts'
import { connectToServer } from '../gateway/server-link/client.ts'
import { systemClock } from '../lib/clock.ts'
import { followEgressLink } from '../lib/egress/link-client.ts'
import { createTelling } from '../lib/egress/telling.ts'
import { createGatewayMetrics } from '../metrics/gateway-metrics.ts'
import { serveMetrics } from '../metrics/serve.ts'
import { openDatabase } from '../store/db.ts'
import { findEndpointPorts } from '../store/endpoint-ports.ts'
import { findEndpointRoutes } from '../store/endpoints.ts'
import { findAddressOfName } from '../store/unit-names.ts'
import { certificateFileIn, EGRESS_PORTS, egressSocketsOf, RESOLVER_PORT, wakeSocketOf } from './channel.ts'
import type { ProcessMain } from './run-process.ts'

export const gatewayProcess: ProcessMain = async ({
  config,
  instance,
  runDir,
  stateDir,
  databaseUrl,
  log,
}) => {
  const db = openDatabase(databaseUrl, log)
  const clock = systemClock
  const resolving: Omit<ResolverOptions, 'port'> = {
    address: namesOf(instance).gateway,
    lookup: (askerAddress, name) => findAddressOfName(db, { askerAddress, name }),
    upstreams: systemUpstreams(),
    log,
    clock,
  }
  const resolver = await startResolver({ ...resolving, port: RESOLVER_PORT })
  const rules = followEgressLink(egressSocketsOf(runDir).names)
  const telling = createTelling(() => rules)
  const egress = { ...rules, note: telling.note }
  const restricted = await startResolver({ ...resolving, port: EGRESS_PORTS.dns, egress })
  const server = connectToServer({ socketPath: wakeSocketOf(runDir), clock })
  const use = createWakeLeases({ server, clock, log })
  const routes = createEndpointRoutes({ findAll: (names) => findEndpointRoutes(db, names), clock })
  const followed = await openCertificates({ file: certificateFileIn(stateDir), clock, log })
  const certificates = await withOnDemandTls(config, { followed, stateDir, routes, clock, log })
  const range = config.gatewayPorts
  const findAll = async () => (range ? await findEndpointPorts(db, range) : [])
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
      await db.destroy()
    },
  }
}

async function listen(server: Server, { host, port }: Address): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}
