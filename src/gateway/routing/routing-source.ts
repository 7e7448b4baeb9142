// Where a gateway looks up what leads where: in the database, or by asking the server, on a host without one.

import type { Kysely } from 'kysely'
import type { Database } from '../../store/db.ts'
import { type EndpointPort, findEndpointPorts, type PortRange } from '../../store/endpoint-ports.ts'
import { type EndpointRoute, findEndpointRoutes } from '../../store/endpoints.ts'
import { findAddressOfName } from '../../store/unit-names.ts'
import type { ServerClient } from '../server-link/client.ts'
import { MAX_PORTS } from '../server-link/protocol.ts'

/** All of them reject while it cannot be looked up. */
export type RoutingSource = {
  /** Returns the live endpoints of these names. */
  findRoutes: (names: string[]) => Promise<EndpointRoute[]>
  /** Returns the ports that belong to one endpoint each. */
  findPorts: (range: PortRange) => Promise<EndpointPort[]>
  /** Returns the address that a unit's name has for the unit at the other address. */
  findAddress: (asked: { askerAddress: string; name: string }) => Promise<string | null>
}

export function routesOfDatabase(db: Kysely<Database>): RoutingSource {
  return {
    findRoutes: async (names) => await findEndpointRoutes(db, names),
    findPorts: async (range) => await findEndpointPorts(db, range),
    findAddress: async (asked) => await findAddressOfName(db, asked),
  }
}

/** `everywhere`: of all hosts, for a gateway that hands visits over. */
export function routesOfServer(
  server: ServerClient,
  { everywhere = false }: { everywhere?: boolean } = {},
): RoutingSource {
  const scope = everywhere ? ({ everywhere } as const) : {}
  return {
    findRoutes: async (names) => {
      const { routes } = await server.ask('routes', { names, ...scope })
      return routes.map(({ secretHash, ...route }) => ({
        ...route,
        secretHash: secretHash === null ? null : Buffer.from(secretHash, 'base64'),
      }))
    },
    findPorts: async ({ first, last }) => {
      const found: EndpointPort[] = []
      for (let from = first; from <= last; from += MAX_PORTS) {
        const part = { first: from, last: Math.min(last, from + MAX_PORTS - 1), ...scope }
        found.push(...(await server.ask('ports', part)).ports)
      }
      return found
    },
    findAddress: async (asked) => (await server.ask('address', asked)).address,
  }
}
