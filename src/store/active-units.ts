// The units that run for a credential, and how many it may run.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Policy, Size } from '../contract/policy.ts'
import { liveStates } from '../contract/states.ts'
import type { EgressRules } from '../lib/egress/rules.ts'
import type { Database } from './schema.ts'
import type { Plan } from './teams.ts'

/** The active units of a credential, and its policy. */
export type ActiveUnits = {
  /** The units that count against its concurrency now. A unit being created as asleep or stopped does not count. */
  live: number
  /** Null for a session, which has no policy. */
  policy: Policy | null
  revokedAt: Date | null
  plan: Plan
  /** The most that units of the team may reach. */
  teamEgress: EgressRules | null
}

/** Also for a revoked credential. Hold the team's lock to admit units by the result. */
export async function findActiveUnits(
  db: Kysely<Database>,
  { teamId, heldBy }: { teamId: string; heldBy: string },
): Promise<ActiveUnits> {
  const row = await db
    .selectFrom('teams')
    .leftJoin('credentials', (join) =>
      join.onRef('credentials.team_id', '=', 'teams.id').on('credentials.id', '=', heldBy),
    )
    .select([
      'credentials.policy',
      'credentials.revoked_at as revokedAt',
      'teams.plan',
      'teams.egress as teamEgress',
    ])
    .select(countLive(db, heldBy).as('live'))
    .where('teams.id', '=', teamId)
    .executeTakeFirstOrThrow()
  return { ...row, live: Number(row.live) }
}

/**
 * The sum of disks and volumes of all units that have or will have any. A unit in `error` has lost them, or is about
 * to.
 */
export async function sumDiskGb(
  db: Kysely<Database>,
  { teamId, sizeDiskGb }: { teamId: string; sizeDiskGb: Record<Size, number> },
): Promise<number> {
  const row = await diskOf(db, teamId, JSON.stringify(sizeDiskGb)).executeTakeFirstOrThrow()
  return Number(row.gb)
}

/** `sizeDiskGb` in JSON. */
export function diskOf(
  db: Pick<Kysely<Database>, 'selectFrom'>,
  teamId: string | RawBuilder<string>,
  sizeDiskGb: string | RawBuilder<string>,
) {
  const gb = sql<string>`coalesce(sum((${sizeDiskGb}::jsonb->>size)::int + coalesce((spec->'volume'->>'gb')::int, 0)), 0)`
  return (
    db
      .selectFrom('units')
      .select(gb.as('gb'))
      .where('team_id', '=', teamId)
      // Written as in the index (units_there in sql/baseline.sql).
      .where(sql<boolean>`state not in ('error', 'destroyed')`)
  )
}

export function countLive(db: Pick<Kysely<Database>, 'selectFrom'>, heldBy: string | RawBuilder<string>) {
  return db
    .selectFrom('units')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('held_by', '=', heldBy)
    .where('state', 'in', liveStates)
    .where((where) => where.or([where('state', '<>', 'creating'), where('stopped_reason', 'is', null)]))
}
