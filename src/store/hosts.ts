// The hosts that units are placed on (decision 147).

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'
import type { HostState } from './tables/hosts.ts'

export type HostRecord = {
  id: string
  name: string
  instance: string | null
  address: string | null
  region: string | null
  state: HostState
  awaySince: Date | null
  reason: string | null
  /** Its last heartbeat. */
  seenAt: Date | null
}

/** In the order in which they came. */
export async function listHosts(db: Kysely<Database>): Promise<HostRecord[]> {
  return await db
    .selectFrom('hosts')
    .leftJoin('heartbeats', 'heartbeats.id', 'hosts.id')
    .select([
      'hosts.id',
      'name',
      'instance',
      'address',
      'region',
      'state',
      'away_since as awaySince',
      'reason',
      'heartbeats.at as seenAt',
    ])
    .orderBy('hosts.id')
    .execute()
}

/**
 * Returns the host of this data directory. The first one to start on a database takes over the host that everything
 * before hosts belongs to; a name that is taken gets the instance behind it.
 */
export async function meetLocalHost(
  db: Kysely<Database>,
  { instance, name, newId }: { instance: string; name: string; newId: string },
): Promise<{ id: string; name: string; region: string | null }> {
  const found = () =>
    db
      .selectFrom('hosts')
      .select(['id', 'name', 'region'])
      .where('instance', '=', instance)
      .executeTakeFirst()
  const known = await found()
  if (known) return known
  const free = (await db.selectFrom('hosts').select('id').where('name', '=', name).executeTakeFirst())
    ? `${name.slice(0, 27)}-${instance}`
    : name
  const own = { instance, name: free, state: 'ready' as const }
  const taken = await db
    .updateTable('hosts')
    .set(own)
    .where('instance', 'is', null)
    .where('address', 'is', null)
    .executeTakeFirst()
  if (taken.numUpdatedRows === 0n)
    await db
      .insertInto('hosts')
      .values({ id: newId, ...own })
      .execute()
  const made = await found()
  if (!made) throw new Error('the host was not there right after it was inserted')
  return made
}

/** How many units that are not destroyed each host has. */
export async function countUnitsByHost(db: Kysely<Database>): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('units')
    .select(({ fn }) => ['host_id', fn.countAll<string>().as('count')])
    .where('state', '<>', 'destroyed')
    .groupBy('host_id')
    .execute()
  return new Map(rows.map(({ host_id, count }) => [host_id, Number(count)]))
}
