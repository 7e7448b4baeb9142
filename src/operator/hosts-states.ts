// `npm run hosts -- drain | undrain | lost | remove`: what the operator decides about a host. The server sees it within two
// seconds.

import type { Kysely } from 'kysely'
import type { Log } from '../lib/log.ts'
import type { Database } from '../store/db.ts'
import { countUnitsByHost, type HostRecord, listHosts, setHostState } from '../store/hosts.ts'

export const hostVerbs = ['drain', 'undrain', 'lost', 'remove'] as const
export type HostVerb = (typeof hostVerbs)[number]

const moves = {
  drain: { from: ['ready'], to: 'draining' },
  undrain: { from: ['draining'], to: 'ready' },
  lost: { from: ['joining', 'ready', 'draining'], to: 'lost' },
  remove: { from: ['joining', 'draining', 'lost'], to: 'removed' },
} as const

const done = {
  drain: 'takes no new units, and what is there goes on',
  undrain: 'takes units again',
  lost: 'is given up: its units have lost their runs, and nothing there is called any more',
  remove: 'is removed',
} as const satisfies Record<HostVerb, string>

/** `here`: the instance of this data directory. Returns the lines to print. Throws a sentence that says what to do instead. */
export async function decideAboutHost(
  { db, log }: { db: Kysely<Database>; log: Log },
  { verb, name, here, now }: { verb: HostVerb; name: string; here: string | null; now: Date },
): Promise<string[]> {
  const hosts = (await listHosts(db)).filter(({ state }) => state !== 'removed')
  const host = hosts.find((each) => each.name === name || each.id === name)
  if (!host) throw new Error(`There is no host "${name}"; "npm run hosts -- list" shows them.`)
  if (here !== null && host.instance === here && (verb === 'lost' || verb === 'remove'))
    throw new Error(`${host.name} is this machine, whose Berth asks: it is neither lost nor removable.`)
  await refuseUnwise(db, verb, host, hosts)
  const { from, to } = moves[verb]
  if (!(await setHostState(db, { id: host.id, from: [...from], to, at: now })))
    throw new Error(`${host.name} is ${host.state}, and ${verb} is for a host that is ${from.join(' or ')}.`)
  log.info({ host: host.name, hostId: host.id, from: host.state, to }, 'operator decided about a host')
  return [`${host.name} ${done[verb]}.`]
}

async function refuseUnwise(
  db: Kysely<Database>,
  verb: HostVerb,
  host: HostRecord,
  hosts: HostRecord[],
): Promise<void> {
  const others = hosts.filter(({ id, state }) => id !== host.id && state === 'ready')
  if (verb === 'drain' && others.length === 0)
    throw new Error(`${host.name} is the only host that takes units: add another one first, or undrain one.`)
  if (verb === 'lost' && host.awaySince === null && host.address !== null)
    throw new Error(`${host.name} answers, so it is not lost: drain it, and remove it once it has no units.`)
  const units = (await countUnitsByHost(db)).get(host.id) ?? 0
  if (verb === 'remove' && units > 0)
    throw new Error(`${host.name} has ${units === 1 ? '1 unit' : `${units} units`}: ${wayToRemove(host)}`)
}

function wayToRemove({ name, state, awaySince }: HostRecord): string {
  if (state === 'lost')
    return 'it can be removed once its teams have destroyed them; until then it does no harm in the list.'
  if (awaySince === null) return 'destroy them first, since their disks are there alone.'
  return `bring it back, or, if it never comes back, "npm run hosts -- lost ${name}", after which they can be destroyed.`
}
