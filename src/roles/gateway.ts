// Visits to units, and the resolver machines ask for names. Sees of the database what routing needs.

import { once } from 'node:events'
import { namesOf } from '../engine/oci/network/names.ts'
import { createEndpointRoutes } from '../gateway/endpoint-routes.ts'
import { startResolver } from '../gateway/resolver.ts'
import { systemUpstreams } from '../gateway/resolver-upstream.ts'
import { createGateway } from '../gateway/server.ts'
import { createUnitUse } from '../gateway/unit-use.ts'
import { connectToServer } from '../gateway/wake-client.ts'
import { systemClock } from '../lib/clock.ts'
import { openDatabase } from '../store/db.ts'
import { findEndpointRoutes } from '../store/endpoints.ts'
import { findAddressOfName } from '../store/unit-names.ts'
import { RESOLVER_PORT, wakeSocketOf } from './channel.ts'
import type { Role } from './role.ts'

export const gatewayRole: Role = async ({ config, instance, runDir, databaseUrl, log }) => {
  const db = openDatabase(databaseUrl, log)
  const resolver = await startResolver({
    address: namesOf(instance).gateway,
    port: RESOLVER_PORT,
    lookup: (askerAddress, name) => findAddressOfName(db, { askerAddress, name }),
    upstreams: systemUpstreams(),
    log,
  })
  const clock = systemClock
  const server = connectToServer({ socketPath: wakeSocketOf(runDir), clock })
  const use = createUnitUse({ server, clock, log })
  const gateway = createGateway({
    domain: config.domain,
    routes: createEndpointRoutes({ findAll: (names) => findEndpointRoutes(db, names), clock }),
    waker: use.waker,
    activity: use.activity,
    clock,
    log,
  })
  gateway.http.listen(config.gatewayHttp.port, config.gatewayHttp.host)
  await once(gateway.http, 'listening')
  return {
    stop: async () => {
      await gateway.close()
      await use.stop()
      await resolver.close()
      await db.destroy()
    },
  }
}
