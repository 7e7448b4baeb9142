// `npm run hosts -- drain | undrain | lost | remove`: what the operator decides about a host. The server sees it within two
// seconds.

import type { Kysely } from 'kysely'
import type { Log } from '../lib/log.ts'
import type { Database } from '../store/db.ts'
import { SECOND, systemClock } from '../lib/clock.ts'
import {
  countUnitsByTeam,
  type HostRecord,
  listHosts,
  setHostState,
  setUnitsToBeDestroyed,
} from '../store/hosts.ts'
import { printable } from '../lib/printable.ts'

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

type Decision = {
  verb: HostVerb
  name: string
  here: string | null
  now: Date
  /** Of `remove`. */
  destroysUnits?: boolean
}

/** `here`: the instance of this data directory. Returns the lines to print. Throws a sentence that says what to do instead. */
export async function decideAboutHost(
  { db, log }: { db: Kysely<Database>; log: Log },
  { verb, name, here, now, destroysUnits = false }: Decision,
): Promise<string[]> {
  const hosts = (await listHosts(db)).filter(({ state }) => state !== 'removed')
  const host = hosts.find((each) => each.name === name || each.id === name)
  if (!host) throw new Error(`There is no host "${name}"; "npm run hosts -- list" shows them.`)
  if (here !== null && host.instance === here && (verb === 'lost' || verb === 'remove'))
    throw new Error(`${host.name} is this machine, whose Berth asks: it is neither lost nor removable.`)
  if (destroysUnits) await destroyUnits({ db, log }, host, now)
  await refuseUnwise(db, verb, host, hosts)
  const { from, to } = moves[verb]
  if (!(await setHostState(db, { id: host.id, from: [...from], to, at: now })))
    throw new Error(
      `${host.name} is ${host.state}, and ${verb} is for a host that is ${from.join(' or ')}.${firstFor(verb, host)}`,
    )
  log.info({ host: host.name, hostId: host.id, from: host.state, to }, 'operator decided about a host')
  return [`${host.name} ${done[verb]}.`]
}

function firstFor(verb: HostVerb, { name, state }: HostRecord): string {
  return verb === 'remove' && state === 'ready' ? ` First run "npm run hosts -- drain ${name}".` : ''
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
  if (verb !== 'remove') return
  const teams = await countUnitsByTeam(db, host.id)
  if (teams.length > 0) throw new Error(`${host.name} has ${unitsOf(teams)}: ${wayToRemove(host)}`)
}

/** The server does it, within seconds: only it can, beside calls of the teams. */
async function destroyUnits(
  { db, log }: { db: Kysely<Database>; log: Log },
  { id, name, state }: HostRecord,
  now: Date,
): Promise<void> {
  if (!(await setUnitsToBeDestroyed(db, { id, at: now })))
    throw new Error(
      `${name} is ${state}, and --destroy-units is for a host that is lost: its teams destroy the units of any other.`,
    )
  log.warn({ host: name, hostId: id }, 'operator has units of a lost host destroyed')
  const deadlineMs = systemClock.monotonicMs() + DESTROYED_WITHIN_MS
  while ((await countUnitsByTeam(db, id)).length > 0) {
    if (systemClock.monotonicMs() > deadlineMs)
      throw new Error(`Units of ${name} are still being destroyed: run the same command again in a minute.`)
    await systemClock.sleep(SECOND / 4)
  }
}

const DESTROYED_WITHIN_MS = 60 * SECOND
const TEAMS_SHOWN = 5

function unitsOf(teams: { slug: string; units: number }[]): string {
  const count = teams.reduce((sum, { units }) => sum + units, 0)
  const named = teams.slice(0, TEAMS_SHOWN).map(({ slug }) => printable(slug))
  const more = teams.length - named.length
  const whose = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ')
  return `${count === 1 ? '1 unit' : `${count} units`} of ${teams.length === 1 ? 'the team' : 'the teams'} ${whose}`
}

function wayToRemove({ name, state, awaySince }: HostRecord): string {
  if (state === 'lost')
    return `it can be removed once they have destroyed them; "npm run hosts -- remove ${name} --destroy-units" does it for them, and is not undone.`
  if (awaySince === null) return 'destroy them first, since their disks are there alone.'
  return `bring it back, or, if it never comes back, "npm run hosts -- lost ${name}", after which they can be destroyed.`
}
