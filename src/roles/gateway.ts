// Visits to units, and the resolver machines ask for names. Sees of the database what routing needs.

import { once } from 'node:events'
import { namesOf } from '../engine/oci/network/names.ts'
import { startResolver } from '../gateway/resolver.ts'
import { systemUpstreams } from '../gateway/resolver-upstream.ts'
import { createGateway } from '../gateway/server.ts'
import { systemClock } from '../lib/clock.ts'
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
  // No unit has a URL yet: every address is one that nobody has.
  const gateway = createGateway({
    domain: config.domain.toLowerCase(),
    routes: { find: async () => null },
    waker: { awake: () => null, wake: async () => ({ kind: 'refused', reason: 'gone' }), doubt: () => {} },
    activity: { begin: () => () => {}, touch: () => {} },
    clock: systemClock,
    log,
  })
  gateway.http.listen(config.gatewayHttp.port, config.gatewayHttp.host)
  await once(gateway.http, 'listening')
  return {
    stop: async () => {
      await gateway.close()
      await resolver.close()
      await db.destroy()
    },
  }
}
