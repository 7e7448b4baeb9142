// Ports of the gateway that belong to one endpoint each, for clients that send no server name (SNI).

import { type Kysely, sql } from 'kysely'
import type { Protocol } from '../contract/endpoint.ts'
import type { Database } from './schema.ts'

/** Both ends are included. */
export type PortRange = { first: number; last: number }

/** `port`: the gateway's port. */
export type EndpointPort = { port: number; name: string; protocol: Protocol }

/**
 * Returns a port of the range that no live endpoint has; null if all are taken. It picks the one unused for longest,
 * because clients may still call its last owner. No other transaction gets it until this one ends.
 */
export async function takePort(db: Kysely<Database>, { first, last }: PortRange): Promise<number | null> {
  await sql`select pg_advisory_xact_lock(hashtext('berth endpoint ports'))`.execute(db)
  const { rows } = await sql<{ port: number }>`
    select ports.port from generate_series(${first}::int, ${last}::int) as ports (port)
    left join endpoints on endpoints.gateway_port = ports.port
    group by ports.port
    having bool_and(endpoints.id is null or endpoints.retired_at is not null)
    order by max(endpoints.retired_at) nulls first, ports.port
    limit 1
  `.execute(db)
  return rows[0]?.port ?? null
}

/**
 * Returns the ports of all live endpoints, as the gateway's role sees them; with `hostId` only of units on that host,
 * which that role cannot ask for.
 */
export async function findEndpointPorts(
  db: Kysely<Database>,
  { first, last }: PortRange,
  { hostId }: { hostId?: string } = {},
): Promise<EndpointPort[]> {
  const rows = await db
    .selectFrom('endpoints')
    .select(['gateway_port as port', 'name', 'protocol'])
    .where('gateway_port', '>=', first)
    .where('gateway_port', '<=', last)
    .where('retired_at', 'is', null)
    .$if(hostId !== undefined, (query) =>
      query.where((where) =>
        where.exists(
          where
            .selectFrom('units')
            .select('units.id')
            .whereRef('units.id', '=', 'endpoints.unit_id')
            .where('units.host_id', '=', hostId ?? ''),
        ),
      ),
    )
    .execute()
  return rows.flatMap(({ port, ...plain }) => (port === null ? [] : { port, ...plain }))
}
