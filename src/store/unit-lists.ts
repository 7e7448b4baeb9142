// The units of a team, filtered, sorted and paginated. A page begins after the last unit of the previous one: after
// its sort value, and among equal values after its id. Costs grow between two pages, so all pages of a list compare
// the costs of one moment.

import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Metadata } from '../contract/metadata.ts'
import type { UnitOrder } from '../contract/unit.ts'
import type { UnitState } from '../contract/states.ts'
import type { Database } from './schema.ts'
import { costNanoCentsAt } from './meters.ts'
import { selectUnits, toRecord, type UnitRecord } from './unit-record.ts'

export type UnitFilter = {
  teamId: string
  stackId: string | null
  /** Null for all states but `destroyed`. */
  states: readonly UnitState[] | null
  destroyedToo: boolean
  /** In the name, the name of the stack, or the image; null for any. */
  part: string | null
  /** Labels that it has all of; null for any. */
  metadata: Metadata | null
}

export type UnitPage = {
  order: UnitOrder
  descending: boolean
  /** The last unit of the page before; null for the first page. `value` as `listUnitsOfTeam` returned it. */
  after: { value: string; id: string } | null
  limit: number
  now: Date
  /** The moment whose costs are compared. */
  costsAt: Date
}

export async function listUnitsOfTeam(
  db: Kysely<Database>,
  filter: UnitFilter,
  { order, descending, after, limit, now, costsAt }: UnitPage,
): Promise<{ unit: UnitRecord; value: string }[]> {
  const value = valueOf(order, costsAt)
  const direction = descending ? 'desc' : 'asc'
  const beyond = sql.raw(descending ? '<' : '>')
  const rows = await matching(selectUnits(db, now), filter)
    .select(sql<string>`${value}::text`.as('value'))
    .$if(after !== null, (query) =>
      query.where(
        order === 'createdAt'
          ? sql<boolean>`units.id ${beyond} ${after?.id}`
          : sql<boolean>`(${value}, units.id) ${beyond} (${after?.value}, ${after?.id})`,
      ),
    )
    .$if(order !== 'createdAt', (query) => query.orderBy(value, direction))
    .orderBy('units.id', direction)
    .limit(limit)
    .execute()
  return rows.map((row) => ({ unit: toRecord(row), value: row.value }))
}

/** The first of all its units. */
export async function listNewestUnits(
  db: Kysely<Database>,
  {
    teamId,
    destroyedToo,
    limit,
    now,
  }: Pick<UnitFilter, 'teamId' | 'destroyedToo'> & { limit: number; now: Date },
): Promise<UnitRecord[]> {
  const filter = { teamId, destroyedToo, stackId: null, states: null, part: null, metadata: null }
  const page = { order: 'createdAt', descending: true, after: null, limit, now, costsAt: now } as const
  return (await listUnitsOfTeam(db, filter, page)).map(({ unit }) => unit)
}

/** How many there are in each state, and what they cost an hour now. */
export async function summarizeUnits(
  db: Kysely<Database>,
  filter: UnitFilter,
): Promise<{ state: UnitState; count: bigint; nanoCentsPerHour: bigint }[]> {
  const perHour = sql<bigint>`coalesce(sum((
    select sum(price_nano_cents_per_hour) from meters where meters.unit_id = units.id and ended_at is null
  )), 0)::bigint`
  const units = db.selectFrom('units').innerJoin('stacks', 'stacks.id', 'units.stack_id')
  return await matching(units, filter)
    .select(['units.state', (select) => select.fn.countAll<bigint>().as('count')])
    .select(perHour.as('nanoCentsPerHour'))
    .groupBy('units.state')
    .execute()
}

type Units = Pick<Database, 'units' | 'stacks'>

function matching<DB extends Units, T extends 'units' | 'stacks', O>(
  query: SelectQueryBuilder<DB, T, O>,
  { teamId, stackId, states, destroyedToo, part, metadata }: UnitFilter,
): SelectQueryBuilder<DB, T, O> {
  const conditions = [
    sql<boolean>`units.team_id = ${teamId}`,
    ...(states === null ? [] : [sql<boolean>`units.state = any(${states})`]),
    // Said also where the states say it: the index of units that are there serves no query that does not.
    ...((states?.includes('destroyed') ?? destroyedToo) ? [] : [sql<boolean>`units.state <> 'destroyed'`]),
    ...(stackId === null ? [] : [sql<boolean>`units.stack_id = ${stackId}`]),
    ...(part === null ? [] : [isIn(part)]),
    ...(metadata === null ? [] : [sql<boolean>`units.metadata @> ${JSON.stringify(metadata)}::jsonb`]),
  ]
  return query.where(sql<boolean>`${sql.join(conditions, sql` and `)}`)
}

function isIn(part: string): RawBuilder<boolean> {
  const places = ['units.name', 'stacks.name', 'units.image'].map(
    (column) => sql`strpos(lower(${sql.ref(column)}), lower(${part})) > 0`,
  )
  return sql<boolean>`(${sql.join(places, sql` or `)})`
}

/** Never null. */
function valueOf(order: UnitOrder, costsAt: Date): RawBuilder<unknown> {
  const values = {
    createdAt: sql`units.id`,
    name: sql`units.name collate "C"`,
    state: sql`units.state collate "C"`,
    cost: costNanoCentsAt(costsAt),
    lastUsedAt: sql`coalesce((extract(epoch from units.last_used_at) * 1000)::bigint, 0)`,
  } satisfies Record<UnitOrder, unknown>
  return values[order]
}
