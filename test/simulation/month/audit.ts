// Compares everything that states a cost with the reference and with each other.

import type { App } from '../../../src/app.ts'
import { findBalances } from '../../../src/store/credits.ts'
import { verifyLedgerOfTeam } from '../../../src/store/verify-ledger.ts'
import { listNewestUnits } from '../../../src/store/unit-lists.ts'
import { listUsage } from '../../../src/store/usage.ts'
import type { World } from './world.ts'

/** Compares the costs that units show right after a heartbeat; they never fall. */
export async function compareShown(world: World, app: App, teams: string[]): Promise<void> {
  const { account, faults } = world
  const now = app.clock.now()
  for (const teamId of teams) {
    const filter = { teamId, destroyedToo: true, limit: 10_000, now }
    let shown = 0n
    for (const { id, costNanoCents } of await listNewestUnits(app.db, filter)) {
      shown += costNanoCents
      const owed = account.costOf(id)
      if (costNanoCents !== owed) faults.push(`${id} shows ${costNanoCents}, and should ${owed}`)
    }
    const [usage, balances] = await Promise.all([
      listUsage(app.db, { teamId, firstDay: '0001-01-01', now }),
      findBalances(app.db, [teamId]),
    ])
    const used = usage.reduce((sum, { nanoCents }) => sum + nanoCents, 0n)
    const spent = (await sumOf(world, 'credits', teamId)) - (balances.get(teamId) ?? 0n)
    if (used !== shown) faults.push(`${teamId}: the usage is ${used}, its units cost ${shown}`)
    if (spent !== shown) faults.push(`${teamId}: ${spent} went off the balance, its units cost ${shown}`)
    for (const { what, of } of await verifyLedgerOfTeam(app.db, teamId))
      faults.push(`${of}: the ${what} does not add up`)
  }
}

/** Compares the ledger by unit, its sums and the billed time, once all units are destroyed. */
export async function audit(
  world: World,
  { withJumps }: { withJumps: boolean },
): Promise<Record<string, number | string>> {
  const { account, faults, pool } = world
  const units = account.units()
  const charged = new Map(
    (
      await pool.query<{ id: string; sum: bigint }>(
        'select unit_id as id, sum(nano_cents)::bigint as sum from charges group by unit_id',
      )
    ).rows.map(({ id, sum }) => [id, sum]),
  )
  for (const { id, state } of units) {
    if (state !== 'destroyed') faults.push(`${id} is ${state} in the end`)
    const [is, owed] = [charged.get(id) ?? 0n, account.costOf(id)]
    if (is !== owed) faults.push(`${id} was charged ${is}, and should ${owed}`)
  }
  const owed = units.reduce((sum, { id }) => sum + account.costOf(id), 0n)
  const sums = {
    charges: await sumOf(world, 'charges'),
    'days of usage': await sumOf(world, 'usage_days'),
    balances: (await sumOf(world, 'credits')) - (await sumOf(world, 'balances')),
  }
  for (const [what, sum] of Object.entries(sums))
    if (sum !== owed) faults.push(`the ${what} sum up to ${sum}, and should to ${owed}`)
  const { rows: overlaps } = await pool.query<{ unit_id: string }>(
    `select one.unit_id from meters one join meters other
     on other.unit_id = one.unit_id and other.kind = one.kind and other.id > one.id
     where other.started_at < one.ended_at or one.ended_at is null`,
  )
  // After the clock was set back, new meters overlap with older ones.
  if (!withJumps) for (const { unit_id } of overlaps) faults.push(`${unit_id} has meters that overlap`)
  const { rows } = await pool.query<{ meters: bigint; charges: bigint }>(
    'select (select count(*) from meters) as meters, (select count(*) from charges) as charges',
  )
  if (Number(rows[0]?.meters) !== account.intervals())
    world.count(`meters more than intervals: ${Number(rows[0]?.meters) - account.intervals()}`)
  return {
    units: units.length,
    'changes of state': account.transitions(),
    meters: String(rows[0]?.meters),
    'rows of the ledger': String(rows[0]?.charges),
    'cents in all': Number(owed) / 1e9,
    'nano-cents of difference': String(sums.charges - owed),
  }
}

async function sumOf({ pool }: World, table: string, teamId: string | null = null): Promise<bigint> {
  const { rows } = await pool.query<{ sum: bigint }>(
    `select coalesce(sum(nano_cents), 0)::bigint as sum from ${table} where $1::text is null or team_id = $1`,
    [teamId],
  )
  return rows[0]?.sum ?? 0n
}
