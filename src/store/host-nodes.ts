// Hosts that are nodes of Kubernetes (decisions/joining.md).

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { HostState } from './tables/hosts.ts'

export type HostOnNode = {
  id: string
  name: string
  state: HostState
  stateSince: Date
  awaySince: Date | null
  version: string | null
  seenAt: Date | null
  certificatesEnd: Date | null
  nodeName: string
  nodeUid: string
  /** It was drained because its node is cordoned. */
  cordoned: boolean
  /** That are not destroyed: each has a disk there. */
  units: number
}

/** By name, without those that were removed. */
export async function listHostsOnNodes(db: Kysely<Database>): Promise<HostOnNode[]> {
  const { rows } = await sql<HostOnNode>`
    select hosts.id, name, hosts.state, state_since as "stateSince", away_since as "awaySince", version,
      heartbeats.at as "seenAt", certificates_end as "certificatesEnd", node_name as "nodeName", node_uid as "nodeUid",
      cordoned, (select count(*)::integer from units where host_id = hosts.id and units.state <> 'destroyed') as units
    from hosts left join heartbeats on heartbeats.id = hosts.id
    where node_name is not null and hosts.state <> 'removed' order by name`.execute(db)
  return rows
}

/** The host of this name is on that node from now on. */
export async function setHostNode(
  db: Kysely<Database>,
  { name, node }: { name: string; node: { name: string; uid: string } },
): Promise<void> {
  await db
    .updateTable('hosts')
    // One that has joined again after it was given up takes units, whatever its node was before.
    .set({ node_name: node.name, node_uid: node.uid, cordoned: sql`cordoned and state <> 'joining'` })
    .where('name', '=', name)
    .where('state', '<>', 'removed')
    .execute()
}

/**
 * Drains a host because its node is cordoned, or undoes that; what the operator has decided stays otherwise. Returns
 * whether there was anything to change.
 */
export async function setCordoned(
  db: Kysely<Database>,
  { id, cordoned, at }: { id: string; cordoned: boolean; at: Date },
): Promise<boolean> {
  const [from, to] = cordoned ? ['ready', 'draining'] : ['draining', 'ready']
  const reason = cordoned ? 'its node was cordoned' : 'its node was uncordoned'
  const { rows } = await sql<{ moves: boolean }>`
    with found as (
      select id, state = ${from}::text as moves from hosts
      where id = ${id} and cordoned <> ${cordoned} and state <> 'joining' for update
    ), changed as (
      update hosts set cordoned = ${cordoned},
        state = case when found.moves then ${to}::text else hosts.state end,
        state_since = case when found.moves then ${at}::timestamptz else state_since end
      from found where hosts.id = found.id returning hosts.id, found.moves
    ), noted as (
      insert into host_events (host_id, at, event, reason)
        select id, ${at}::timestamptz, ${to}::text, ${reason}::text from changed where moves
    )
    select moves from changed`.execute(db)
  return rows.some(({ moves }) => moves)
}
