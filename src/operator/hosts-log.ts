// `npm run hosts -- log`: what happened to the hosts.

import type { Kysely } from 'kysely'
import type { Database } from '../store/db.ts'
import { type HostEvent, listHostEvents } from '../store/hosts.ts'
import { printable } from '../lib/printable.ts'
import { formatTable } from './table.ts'

const SHOWN = 100

const meanings = {
  joining: 'is waited for',
  ready: 'takes units',
  draining: 'takes no new units',
  lost: 'was given up',
  removed: 'was removed',
  away: 'does not answer',
  back: 'answers again',
  renewed: 'has new certificates',
  'not renewed': 'got no new certificates',
  emptied: 'has its units destroyed',
} as const satisfies Record<HostEvent['event'], string>

/** Returns the lines to print, oldest first. */
export async function tableOfHostEvents(db: Kysely<Database>, host: string | null): Promise<string[]> {
  const events = await listHostEvents(db, { host, limit: SHOWN })
  if (events.length === 0) return ['Nothing has happened to a host yet.']
  const rows = events.map((each) => [
    each.at.toISOString(),
    printable(each.host),
    meanings[each.event],
    each.reason === null ? '-' : printable(each.reason),
  ])
  return formatTable([['at', 'host', 'it', 'reason'], ...rows])
}
