// The hosts whose engines this server calls, and the one place that answers which engine has a unit's machine. A call
// for a host that is not here, or that is away, fails at once with `engine_away`; other hosts are not touched.

import type { Engine } from './engine.ts'
import { EngineError } from './errors.ts'

export type FleetHost = {
  id: string
  name: string
  region: string | null
  engine: Engine
}

export type Fleet = {
  /** The engine that has the machine of a unit on this host. */
  engineOf(unit: { hostId: string }): Engine
  find(hostId: string): FleetHost | null
  hosts(): FleetHost[]
  /** The server's own host. */
  local(): FleetHost
  /** Replaces the host of that id. */
  add(host: FleetHost): void
  remove(hostId: string): void
  /**
   * Works beside each host until the signal aborts: with those that are here, and those that are added later. The
   * signal of each work also aborts when its host is removed.
   */
  follow(work: (host: FleetHost, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

type Member = { host: FleetHost; removed: AbortController }
type Follower = (member: Member) => void

export function createFleet(local: FleetHost, others: FleetHost[] = []): Fleet {
  const members = new Map<string, Member>()
  const followers = new Set<Follower>()
  const absent = new Map<string, Engine>()

  function add(host: FleetHost): void {
    remove(host.id)
    const member = { host, removed: new AbortController() }
    members.set(host.id, member)
    for (const follow of followers) follow(member)
  }

  function remove(hostId: string): void {
    members.get(hostId)?.removed.abort()
    members.delete(hostId)
  }

  for (const host of [local, ...others]) add(host)
  return {
    engineOf: ({ hostId }) => {
      const member = members.get(hostId)
      if (member) return member.host.engine
      const away = absent.get(hostId) ?? absentEngine()
      absent.set(hostId, away)
      return away
    },
    find: (hostId) => members.get(hostId)?.host ?? null,
    hosts: () => [...members.values()].map(({ host }) => host),
    local: () => local,
    add,
    remove,
    follow: async (work, signal) => {
      const works: Promise<void>[] = []
      const begin: Follower = ({ host, removed }) => {
        works.push(work(host, AbortSignal.any([signal, removed.signal])))
      }
      for (const member of members.values()) begin(member)
      followers.add(begin)
      if (!signal.aborted)
        await new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => resolve(), { once: true }),
        )
      followers.delete(begin)
      await Promise.all(works)
    },
  }
}

const streams: ReadonlySet<string> = new Set<keyof Engine>(['followLogs', 'followProcess'])

/** Every call of it fails. */
function absentEngine(): Engine {
  const fail = () => new EngineError('engine_away', 'The host of this unit is not part of this service.')
  const refuse = async () => await Promise.reject(fail())
  const refuseStream = async function* () {
    yield await refuse()
  }
  return new Proxy({} as Engine, {
    get: (_target, operation) => (streams.has(String(operation)) ? refuseStream : refuse),
  })
}
