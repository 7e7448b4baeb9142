// Counts and times of the whole service, for its operator.

import { type Kysely, sql } from 'kysely'
import type { UnitState } from '../contract/states.ts'
import type { Database } from './schema.ts'

export type Gauges = {
  units: { state: UnitState; isolation: 'gvisor' | 'runc'; count: number }[]
  heartbeatAt: Date | null
  /** Up to when the open meter that was charged longest ago has been charged. */
  oldestMeterAt: Date | null
  mails: Backlog
  /** Payments that are due to be polled. */
  payments: Backlog
}

/** The number of waiting items, and since when the oldest waits. */
export type Backlog = { count: number; since: Date | null }

export async function readGauges(db: Kysely<Database>, now: Date): Promise<Gauges> {
  const [units, times, mails, payments] = await Promise.all([
    sql<{ state: UnitState; isolation: 'gvisor' | 'runc'; count: number }>`
      select state, isolation, count(*)::int as count from units where state <> 'destroyed'
      group by state, isolation
    `.execute(db),
    sql<{ heartbeatAt: Date | null; oldestMeterAt: Date | null }>`
      select (select max(at) from heartbeats) as "heartbeatAt",
        (select min(billed_to) from meters where ended_at is null) as "oldestMeterAt"
    `.execute(db),
    sql<Backlog>`select count(*)::int as count, min(created_at) as since from mails`.execute(db),
    sql<Backlog>`
      select count(*)::int as count, min(due_at) as since from payments where due_at <= ${now}
    `.execute(db),
  ])
  const none = { count: 0, since: null }
  return {
    units: units.rows,
    ...(times.rows[0] ?? { heartbeatAt: null, oldestMeterAt: null }),
    mails: mails.rows[0] ?? none,
    payments: payments.rows[0] ?? none,
  }
}
