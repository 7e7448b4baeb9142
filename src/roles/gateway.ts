// Visits to units, and the resolver machines ask for names. Sees of the database what routing needs.

import { once } from 'node:events'
import { namesOf } from '../engine/oci/network/names.ts'
import { startResolver } from '../gateway/resolver.ts'
import { systemUpstreams } from '../gateway/resolver-upstream.ts'
import { createGateway } from '../gateway/server.ts'
import { openDatabase } from '../store/db.ts'
import { findAddressOfName } from '../store/unit-names.ts'
import { RESOLVER_PORT } from './channel.ts'
import type { Role } from './role.ts'

export const gatewayRole: Role = async ({ config, instance, databaseUrl, log }) => {
  const db = openDatabase(databaseUrl, log)
  const resolver = await startResolver({
    address: namesOf(instance).gateway,
    port: RESOLVER_PORT,
    lookup: (askerAddress, name) => findAddressOfName(db, { askerAddress, name }),
    upstreams: systemUpstreams(),
    log,
  })
  const gateway = createGateway()
  gateway.listen(config.gatewayHttp.port, config.gatewayHttp.host)
  await once(gateway, 'listening')
  return {
    stop: async () => {
      gateway.closeAllConnections()
      await new Promise((resolve) => gateway.close(resolve))
      await resolver.close()
      await db.destroy()
    },
  }
}
