// Which units run on the account of a credential, beside what it may.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Policy, Size } from '../contract/policy.ts'
import { liveStates } from '../contract/states.ts'
import type { Database } from './db.ts'
import type { Plan } from './teams.ts'

/** What a credential holds and may hold. */
export type ActiveUnits = {
  /** Units that use up its concurrency now. What is being made to be asleep or stopped does not. */
  live: number
  /** Null for a session, which has none of its own. */
  policy: Policy | null
  revokedAt: Date | null
  plan: Plan
}

/** Also of a credential that was revoked. Whoever admits units by it has the team locked. */
export async function findActiveUnits(
  db: Kysely<Database>,
  { teamId, heldBy }: { teamId: string; heldBy: string },
): Promise<ActiveUnits> {
  const row = await db
    .selectFrom('teams')
    .leftJoin('credentials', (join) =>
      join.onRef('credentials.team_id', '=', 'teams.id').on('credentials.id', '=', heldBy),
    )
    .select(['credentials.policy', 'credentials.revoked_at as revokedAt', 'teams.plan'])
    .select(countLive(db, heldBy).as('live'))
    .where('teams.id', '=', teamId)
    .executeTakeFirstOrThrow()
  return { ...row, live: Number(row.live) }
}

/** Of disks and volumes of all units that have any, or will. One in `error` has lost them, or is about to. */
export async function sumDiskGb(
  db: Kysely<Database>,
  { teamId, sizeDiskGb }: { teamId: string; sizeDiskGb: Record<Size, number> },
): Promise<number> {
  const row = await db
    .selectFrom('units')
    .select(
      sql<string>`coalesce(sum((${JSON.stringify(sizeDiskGb)}::jsonb->>size)::int + coalesce((spec->'volume'->>'gb')::int, 0)), 0)`.as(
        'gb',
      ),
    )
    .where('team_id', '=', teamId)
    // As the index says it (migrations/0025-disks-there.ts).
    .where(sql<boolean>`state not in ('error', 'destroyed')`)
    .executeTakeFirstOrThrow()
  return Number(row.gb)
}

export function countLive(db: Pick<Kysely<Database>, 'selectFrom'>, heldBy: string | RawBuilder<string>) {
  return db
    .selectFrom('units')
    .select((select) => select.fn.countAll<bigint>().as('count'))
    .where('held_by', '=', heldBy)
    .where('state', 'in', liveStates)
    .where((where) => where.or([where('state', '<>', 'creating'), where('stopped_reason', 'is', null)]))
}
