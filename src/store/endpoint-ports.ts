// Ports of the gateway that belong to one endpoint each, for clients that name none (no SNI).

import { type Kysely, sql } from 'kysely'
import type { Protocol } from '../contract/endpoint.ts'
import type { Database } from './db.ts'

/** Both ends belong to it. */
export type PortRange = { first: number; last: number }

/** `port`: the gateway's. */
export type EndpointPort = { port: number; name: string; protocol: Protocol }

/**
 * A port of the range that no live endpoint has; null when all are taken. Of those the one that was unused the longest:
 * somebody may still call the last one who had it. Nobody else is given it until the transaction is over.
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

/** Of all live endpoints, as the gateway sees them with its own role. */
export async function findEndpointPorts(
  db: Kysely<Database>,
  { first, last }: PortRange,
): Promise<EndpointPort[]> {
  const rows = await db
    .selectFrom('endpoints')
    .select(['gateway_port as port', 'name', 'protocol'])
    .where('gateway_port', '>=', first)
    .where('gateway_port', '<=', last)
    .where('retired_at', 'is', null)
    .execute()
  return rows.flatMap(({ port, ...plain }) => (port === null ? [] : { port, ...plain }))
}
