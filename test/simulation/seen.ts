// What the database says of every unit after each commit.

import type { Size } from '../../src/contract/policy.ts'
import type { SimulatedDatabase } from './database.ts'

/** A unit with its runs, oldest first. */
export type Seen = {
  id: string
  hostId: string
  state: string
  generation: number
  reason: string | null
  frozen: boolean
  heldBy: string
  sleep: string
  sleepsAt: Date | null
  forkId: string | null
  forkedFrom: string | null
  /** It never becomes ready, by its own healthcheck. */
  isSick: boolean
  changedAt: Date
  runs: { from: Date; to: Date | null }[]
  /** The last heartbeat of a complete server. */
  wholeAt: Date | null
  size: Size
  hasVolume: boolean
  /** Nano-cents on the ledger. */
  charged: bigint
}

const UNITS = `
  select id, host_id as "hostId", state, generation, fork_id as "forkId", forked_from as "forkedFrom", stopped_reason as reason, frozen, held_by as "heldBy", sleep, sleeps_at as "sleepsAt",
    size, coalesce(spec -> 'volume', 'null')::text <> 'null' as "hasVolume", coalesce(spec #>> '{healthcheck,cmd,0}' = 'false', false) as "isSick", changed_at as "changedAt",
    array(select started_at from meters where unit_id = units.id and kind = 'compute' order by meters.id) as "from",
    array(select ended_at from meters where unit_id = units.id and kind = 'compute' order by meters.id) as "to",
    (select at from heartbeats where id = units.host_id) as "wholeAt",
    (select coalesce(sum(nano_cents), 0)::bigint from charges where unit_id = units.id) as charged
  from units order by id`

type Row = Omit<Seen, 'runs'> & { from: Date[]; to: (Date | null)[] }

export async function readUnits(database: SimulatedDatabase): Promise<Seen[]> {
  const rows = await database.query<Row>(UNITS)
  return rows.map(({ from, to, ...unit }) => ({
    ...unit,
    runs: from.map((begin, index) => ({ from: begin, to: to[index] ?? null })),
  }))
}

/** Describes the state in a few words. */
export function standingOf({ state, reason, frozen, generation }: Seen): string {
  return `${state}${reason ? ` (${reason})` : ''}${frozen ? ' frozen' : ''}, run ${generation}`
}
