// `npm run hosts -- list`: the hosts of this Berth, and what to do about each.

import type { Kysely } from 'kysely'
import { adviceOnAuthority, type AuthorityTimes } from '../certificates/fleet-ca.ts'
import { describeHosts } from '../domain/hosts/describe.ts'
import { printable } from '../lib/printable.ts'
import type { Database } from '../store/db.ts'
import { listHosts } from '../store/hosts.ts'
import type { Block } from '../supervisor/join/blocks.ts'
import { formatTable } from './table.ts'

const NOTHING = 'nothing'

/** Returns the lines to print. `blocks`: of the hosts that have joined, and of this machine. */
export async function tableOfHosts(db: Kysely<Database>, now: Date, blocks: Block[]): Promise<string[]> {
  const hosts = await describeHosts(db, now)
  const rows = hosts.map((host) => [
    host.name,
    host.state,
    host.region,
    host.engine,
    blocks.find(({ instance }) => instance === host.instance)?.subnet ?? '-',
    String(host.units),
    host.freeMemory,
    host.clock,
    host.certificates,
    host.seen,
    host.id,
    host.advice ?? NOTHING,
  ])
  // Removed ones too: their blocks stay.
  const known = new Set((await listHosts(db)).map(({ instance }) => instance))
  rows.push(...blocks.filter(({ instance }) => !known.has(instance)).map(rowOfUnknown))
  return formatTable([
    [
      'host',
      'state',
      'region',
      'engine',
      'addresses',
      'units',
      'free memory',
      'clock',
      'certificates',
      'seen',
      'id',
      'what to do',
    ],
    ...rows,
  ])
}

/** Lines below the table. Null: there is no authority. */
export function linesOnAuthority(times: AuthorityTimes | null, now: Date): string[] {
  if (!times) return []
  const ends = `The authority of these certificates ends on ${times.endsAt.toISOString().slice(0, 10)}.`
  const advice = adviceOnAuthority(times, now)
  return ['', advice === null ? ends : `${ends} ${advice}`]
}

/** As after a backup from before it joined was restored. */
function rowOfUnknown({ name, subnet }: Block): string[] {
  const what = 'the database does not know it: join it again (npm run hosts -- join-token)'
  return [printable(name), 'unknown', '-', '-', subnet, '0', '-', '-', '-', 'never', '-', what]
}
