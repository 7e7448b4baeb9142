// The hosts whose gateways ask the server (gateway/server-link/), and what these say of themselves.

import { type Kysely, sql } from 'kysely'
import type { GatewayFacts } from '../contract/gateway-facts.ts'
import { SIGNED_BEFORE_MS } from '../lib/fleet-identity.ts'
import type { Database } from './schema.ts'

/** States in which a host has nothing to ask any more. */
const GONE = ['lost', 'removed'] as const

/**
 * Returns the id of the host with this name, unless it was given up or removed, or the certificate is that of an earlier
 * host of this name.
 */
export async function findHostOfGateway(
  db: Kysely<Database>,
  { name, issuedAt }: { name: string; issuedAt: Date },
): Promise<string | null> {
  const row = await db
    .selectFrom('hosts')
    .select('id')
    .where('name', '=', name)
    .where('state', 'not in', [...GONE])
    .where('member_since', '<=', new Date(issuedAt.getTime() + SIGNED_BEFORE_MS))
    .executeTakeFirst()
  return row?.id ?? null
}

/** Returns those of the hosts that were given up or removed, or that never were. */
export async function findGoneHosts(db: Kysely<Database>, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('hosts')
    .select('id')
    .where('id', 'in', ids)
    .where('state', 'not in', [...GONE])
    .execute()
  const there = new Set(rows.map(({ id }) => id))
  return ids.filter((id) => !there.has(id))
}

export async function saveGatewayFacts(
  db: Kysely<Database>,
  { hostId, facts }: { hostId: string; facts: GatewayFacts },
): Promise<void> {
  const gateway = JSON.stringify(facts)
  await sql`
    update hosts set gateway = ${gateway}::jsonb
    where id = ${hostId} and gateway is distinct from ${gateway}::jsonb
  `.execute(db)
}

/** Of all hosts whose gateway has said something, by the host's id. */
export async function listGatewayFacts(db: Kysely<Database>): Promise<Map<string, GatewayFacts>> {
  const rows = await db
    .selectFrom('hosts')
    .select(['id', 'gateway'])
    .where('gateway', 'is not', null)
    .execute()
  return new Map(rows.flatMap(({ id, gateway }) => (gateway === null ? [] : [[id, gateway]])))
}

/** Returns those of the units that are on this host. */
export async function findUnitsOnHost(
  db: Kysely<Database>,
  { hostId, ids }: { hostId: string; ids: string[] },
): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`
    select id from units where id = any(${ids}) and host_id = ${hostId}
  `.execute(db)
  return new Set(rows.map(({ id }) => id))
}
