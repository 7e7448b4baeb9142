// What teams are told of the hosts that their units are on (GET /v1/events).

import type { App } from '../../app.ts'
import type { TeamEvent } from '../../contract/events.ts'
import { type HostRecord, listHosts, listTeamsOnHosts } from '../../store/hosts.ts'
import { tellChanged } from '../transactions/changes.ts'

type HostData = Extract<TeamEvent, { event: 'host' }>['data']

/** By host, what its teams were told last. */
const toldOf = new WeakMap<App, Map<string, string>>()

/** Call it with all hosts, as often as they are looked after: the operator's commands change them in another process. */
export async function tellTeamsOfHosts(app: App, hosts: HostRecord[]): Promise<void> {
  const before = toldOf.get(app)
  const now = new Map(hosts.map((host) => [host.id, `${host.state} ${host.awaySince?.getTime()}`]))
  toldOf.set(app, now)
  if (!before) return
  const changed = [...now].flatMap(([id, told]) => (before.get(id) === told ? [] : [id]))
  if (changed.length === 0) return
  for (const teamId of await listTeamsOnHosts(app.db, changed)) tellChanged(app, teamId)
}

export async function hostEventsOf(app: App, ids: string[]): Promise<HostData[]> {
  if (ids.length === 0) return []
  const hosts = await listHosts(app.db)
  return hosts.filter(({ id }) => ids.includes(id)).flatMap((host) => toData(host) ?? [])
}

/** Null for a host that has not been called yet: no unit is there. */
function toData({ id, state, stateSince, awaySince }: HostRecord): HostData | null {
  if (state === 'joining') return null
  if (awaySince && (state === 'ready' || state === 'draining'))
    return { id, state: 'away', since: awaySince.toISOString() }
  return { id, state, since: stateSince.toISOString() }
}
