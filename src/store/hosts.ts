// The hosts that units are placed on (decisions/hosts.md).

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'
import type { HostEventKind, HostState } from './tables/hosts.ts'

export type HostRecord = {
  id: string
  name: string
  instance: string | null
  address: string | null
  region: string | null
  state: HostState
  stateSince: Date
  /** Since when it is the host that it is: since it joined, also if that was again after it was given up. */
  memberSince: Date
  awaySince: Date | null
  reason: string | null
  boot: string | null
  /** The isolation classes that it has, the one of new units first; null before it said so. */
  classes: string[] | null
  availableMb: number | null
  memoryMb: number | null
  clockOffsetMs: number | null
  /** Its last heartbeat. */
  seenAt: Date | null
  /** When the first of its certificates ends; null if it has said nothing of any. */
  certificatesEnd: Date | null
  /** It was given up, and the operator has said that its units are to be destroyed. */
  destroysUnits: boolean
  /** Of Berth, as its engine last said. */
  version: string | null
}

/** By name. */
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
      'state_since as stateSince',
      'member_since as memberSince',
      'away_since as awaySince',
      'reason',
      'hosts.boot',
      'classes',
      'available_mb as availableMb',
      'memory_mb as memoryMb',
      'clock_offset_ms as clockOffsetMs',
      'heartbeats.at as seenAt',
      'certificates_end as certificatesEnd',
      'destroys_units as destroysUnits',
      'version',
    ])
    .orderBy('name')
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
  if (known) {
    // It was given up, and is there: its units have ended, and it takes new ones.
    await setHostState(db, {
      id: known.id,
      from: ['joining', 'lost', 'removed'],
      to: 'ready',
      at: new Date(),
    })
    return known
  }
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

export type HostFactsRow = {
  id: string
  instance: string
  boot: string
  /** The one of new units first. */
  classes: string[]
  cpus: number
  memoryMb: number
  availableMb: number
  clockOffsetMs: number
  version: string | null
}

/** What engines said of their hosts, of all of them in one statement. An instance that is known stays. */
export async function saveHostFacts(db: Kysely<Database>, facts: HostFactsRow[]): Promise<void> {
  if (facts.length === 0) return
  await sql`
    update hosts set
      instance = coalesce(hosts.instance, said.instance), boot = said.boot, classes = said.classes, cpus = said.cpus,
      memory_mb = said."memoryMb", available_mb = said."availableMb", clock_offset_ms = said."clockOffsetMs",
      version = said.version
    from jsonb_to_recordset(${JSON.stringify(facts)}::jsonb) as said (
      id text, instance text, boot text, classes jsonb, cpus integer, "memoryMb" integer, "availableMb" integer,
      "clockOffsetMs" integer, version text)
    where hosts.id = said.id`.execute(db)
}

/** `awaySince` null: it is back. */
export async function setHostAway(
  db: Kysely<Database>,
  { id, awaySince, reason, at }: { id: string; awaySince: Date | null; reason: string | null; at: Date },
): Promise<void> {
  await sql`
    with before as (select id, away_since, reason from hosts where id = ${id} for update),
      set_away as (update hosts set away_since = ${awaySince}::timestamptz, reason = ${reason}::text where id = ${id})
    insert into host_events (host_id, at, event, reason)
      select id, ${at}::timestamptz, ${awaySince ? 'away' : 'back'}::text, ${reason}::text from before
      where (away_since is null) <> (${awaySince}::timestamptz is null) or reason is distinct from ${reason}::text
  `.execute(db)
  await forgetOldEvents(db, id)
}

/** Returns whether this call changed it: the host was in one of those states. */
export async function setHostState(
  db: Kysely<Database>,
  { id, from, to, at }: { id: string; from: HostState[]; to: HostState; at: Date },
): Promise<boolean> {
  const gaveUp = to === 'lost' ? 1 : 0
  const { numAffectedRows } = await sql`
    with moved as (
      update hosts set state = ${to}::text, state_since = ${at}::timestamptz, epoch = epoch + ${gaveUp}::integer,
        destroys_units = false
      where id = ${id} and state = any(${from}::text[]) returning id
    )
    insert into host_events (host_id, at, event) select id, ${at}::timestamptz, ${to}::text from moved
  `.execute(db)
  return numAffectedRows === 1n
}

/** Of a host that was given up. Returns whether it is one. */
export async function setUnitsToBeDestroyed(
  db: Kysely<Database>,
  { id, at }: { id: string; at: Date },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    with found as (update hosts set destroys_units = true where id = ${id} and state = 'lost' returning id)
    insert into host_events (host_id, at, event) select id, ${at}::timestamptz, 'emptied' from found
  `.execute(db)
  return numAffectedRows === 1n
}

const KEPT_EVENTS = 500

/** A line that is cut again and again must not fill the database. */
async function forgetOldEvents(db: Kysely<Database>, hostId: string): Promise<void> {
  await sql`
    delete from host_events where host_id = ${hostId} and id <= (
      select id from host_events where host_id = ${hostId} order by id desc offset ${KEPT_EVENTS} limit 1
    )
  `.execute(db)
}

export type HostEvent = { host: string; at: Date; event: HostEventKind; reason: string | null }

/** The newest, oldest first. */
export async function listHostEvents(
  db: Kysely<Database>,
  { host, limit }: { host: string | null; limit: number },
): Promise<HostEvent[]> {
  const rows = await db
    .selectFrom('host_events')
    .innerJoin('hosts', 'hosts.id', 'host_events.host_id')
    .select(['hosts.name as host', 'host_events.at', 'host_events.event', 'host_events.reason'])
    .$if(host !== null, (query) =>
      query.where((where) =>
        where.or([where('hosts.name', '=', host ?? ''), where('hosts.id', '=', host ?? '')]),
      ),
    )
    .orderBy('host_events.id', 'desc')
    .limit(limit)
    .execute()
  return rows.toReversed()
}

/** By name: teams that have units on the host, with their count. */
export async function countUnitsByTeam(
  db: Kysely<Database>,
  hostId: string,
): Promise<{ id: string; slug: string; units: number }[]> {
  const rows = await db
    .selectFrom('units')
    .innerJoin('teams', 'teams.id', 'units.team_id')
    .select(({ fn }) => ['teams.id', 'teams.slug', fn.countAll<string>().as('count')])
    .where('units.host_id', '=', hostId)
    .where('units.state', '<>', 'destroyed')
    .groupBy(['teams.id', 'teams.slug'])
    .orderBy('teams.slug')
    .execute()
  return rows.map(({ id, slug, count }) => ({ id, slug, units: Number(count) }))
}

/** Teams that have units there. */
export async function listTeamsOnHosts(db: Kysely<Database>, hostIds: string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('units')
    .select('team_id')
    .distinct()
    .where('host_id', 'in', hostIds)
    .where('state', '<>', 'destroyed')
    .execute()
  return rows.map(({ team_id }) => team_id)
}

export async function insertHost(
  db: Kysely<Database>,
  host: { id: string; name: string; address: string; region: string | null },
): Promise<void> {
  await db
    .insertInto('hosts')
    .values({ ...host, state: 'joining' })
    .execute()
}
