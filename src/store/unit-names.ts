// Resolves names of units for the unit that asks. The gateway's resolver reads it with the gateway's role, which can
// only see these columns.

import type { Kysely } from 'kysely'
import { statesWithoutName } from '../contract/states.ts'
import type { Database } from './schema.ts'

/**
 * Returns the address of the unit that `name` refers to for the unit at `askerAddress`: `<unit>.<stack>.internal` in
 * its team, a bare `<unit>` in its stack. Null for any other name, and for an asker that is not a unit; with `hostId`
 * also for units of other hosts.
 */
export async function findAddressOfName(
  db: Kysely<Database>,
  { askerAddress, name, hostId }: { askerAddress: string; name: string; hostId?: string },
): Promise<string | null> {
  const asked = parseName(name)
  if (asked === null) return null
  const query = db
    .selectFrom('units as asker')
    .innerJoin('units as target', 'target.team_id', 'asker.team_id')
    .innerJoin('stacks', 'stacks.id', 'target.stack_id')
    .where('asker.address', '=', askerAddress)
    .where('asker.state', '<>', 'destroyed')
    .where('target.state', 'not in', [...statesWithoutName])
    .where('target.name', '=', asked.unit)
    .$if(hostId !== undefined, (where) =>
      where.where('asker.host_id', '=', hostId ?? '').where('target.host_id', '=', hostId ?? ''),
    )
    .select('target.address')
  const scoped =
    asked.stack === null
      ? query.whereRef('target.stack_id', '=', 'asker.stack_id')
      : query.where('stacks.name', '=', asked.stack)
  return (await scoped.executeTakeFirst())?.address ?? null
}

function parseName(name: string): { unit: string; stack: string | null } | null {
  const labels = name.split('.')
  const [unit = '', stack = null] = labels
  if (labels.length === 1) return { unit, stack: null }
  return labels.length === 3 && labels[2] === 'internal' ? { unit, stack } : null
}
