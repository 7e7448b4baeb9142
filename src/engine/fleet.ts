// The hosts whose engines this server calls, and the one place that answers which engine has a unit's machine. A call
// for a host that is not here, or that is away, fails at once with `engine_away`; other hosts are not touched.

import type { Capacity, Engine } from './engine.ts'
import { EngineError } from './errors.ts'
import { correctTimes } from './corrected-times.ts'
import { emptyEngine } from './empty-engine.ts'
import { guardEngine } from './guarded.ts'

/** A host that this server can call. */
export type NewHost = { id: string; name: string; region: string | null; engine: Engine }

/** The way to the engine of another machine. */
export type FarEngine = {
  engine: Engine
  /** Ends what is under way on its connections. */
  cut: () => void
}

export type FarAddress = {
  name: string
  address: string
  /** An engine with an older certificate is that of an earlier host of this name. */
  memberSince?: Date
}

export type FleetHost = NewHost & {
  /** Where its engine is called; null for the server's own. */
  address: string | null
  /** The same engine without the guard, for the job that finds out whether it answers. */
  unguarded: Engine
  /** Null while its engine answers. Calls for its units fail meanwhile. */
  awaySince: Date | null
  /** It takes no units of new teams. */
  isDraining: boolean
  /** It was given up: it has no machines any more, for all that this service knows. */
  isLost: boolean
  /** In monotonic time: it has refused a unit, and others are preferred until then. */
  refusedUntilMs: number
  /** Memory of units that were placed a moment ago, which its free memory does not show yet. */
  promised: { teamId: string; memoryMb: number; untilMs: number }[]
  /** Images that were made present there since this server began. */
  images: Set<string>
  /** What its engine last said; null before it did. */
  capacity: Capacity | null
  /** By how much its wall clock is ahead of the server's. */
  clockOffsetMs: number
  /** When the first of its certificates ends; null if it has said nothing of any. */
  certificatesEnd: Date | null
  /** In monotonic time: when it last answered. */
  answeredMs: number
  /** In monotonic time: when what it said was last stored. */
  storedMs: number
  /** In monotonic time: when it was last looked after. */
  watchedMs: number
}

export type Fleet = {
  /** The engine that has the machine of a unit on this host. */
  engineOf(unit: { hostId: string }): Engine
  find(hostId: string): FleetHost | null
  hosts(): FleetHost[]
  /** The server's own host; null for a server without an engine. */
  findLocal(): FleetHost | null
  /** The same; throws where there is none. */
  local(): FleetHost
  /** Adds a host of another machine, which is away until `setAway` says otherwise. */
  open(host: Omit<NewHost, 'engine'> & FarAddress, awaySince: Date): FleetHost
  /** A host that this server has no way to: calls for its units say since when it was not seen. */
  noteAbsent(hostId: string, since: Date): void
  /** Whatever its engine has said before, none of its machines is left. */
  giveUp(host: Omit<NewHost, 'engine'>): void
  remove(hostId: string): void
  /** Null: it is back. Else its calls under way end too. */
  setAway(host: FleetHost, since: Date | null): void
  /**
   * Works beside each host until the signal aborts: with those that are here, and those that are added later. The
   * signal of each work also aborts when its host is removed.
   */
  follow(work: (host: FleetHost, signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
}

type Member = { host: FleetHost; cut: () => void; removed: AbortController }
type Follower = (member: Member) => void

/**
 * `own` null: the server has no engine. `openFar` connects to the engine of another machine; without it there is only the
 * server's own host.
 */
export function createFleet(
  own: NewHost | null,
  openFar: (to: FarAddress) => FarEngine = noFarEngines,
): Fleet {
  const members = new Map<string, Member>()
  const followers = new Set<Follower>()
  const absent = new Map<string, Engine>()
  const local = own && join(hostOf(own, null), () => {})

  function join(host: FleetHost, cut: () => void): FleetHost {
    remove(host.id)
    const member = { host, cut, removed: new AbortController() }
    members.set(host.id, member)
    for (const follow of followers) follow(member)
    return host
  }

  function open(far: Omit<NewHost, 'engine'> & FarAddress, awaySince: Date): FleetHost {
    const { engine: unguarded, cut } = openFar(far)
    const corrected = correctTimes(unguarded, () => host.clockOffsetMs)
    const host = hostOf({ ...far, engine: corrected }, far.address)
    const away = () => (host.awaySince ? hostAwayError(host.awaySince) : null)
    return join(Object.assign(host, { engine: guardEngine(corrected, away), awaySince }), cut)
  }

  function giveUp({ id, name, region }: Omit<NewHost, 'engine'>): void {
    if (members.get(id)?.host.isLost) return
    const host = hostOf({ id, name, region, engine: emptyEngine }, null)
    join(Object.assign(host, { isDraining: true, isLost: true }), () => {})
  }

  function remove(hostId: string): void {
    const member = members.get(hostId)
    members.delete(hostId)
    member?.removed.abort()
    member?.cut()
  }

  return {
    engineOf: ({ hostId }) => members.get(hostId)?.host.engine ?? absent.get(hostId) ?? absentEngine,
    find: (hostId) => members.get(hostId)?.host ?? null,
    hosts: () => [...members.values()].map(({ host }) => host),
    findLocal: () => local,
    local: () => {
      if (!local) throw new Error('This server has no engine of its own.')
      return local
    },
    open,
    noteAbsent: (hostId, since) => {
      const away = () => hostAwayError(since)
      if (!absent.has(hostId)) absent.set(hostId, guardEngine({} as Engine, away))
    },
    giveUp,
    remove,
    setAway: (host, since) => {
      host.awaySince = since
      if (since) members.get(host.id)?.cut()
    },
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

function hostOf({ id, name, region, engine }: NewHost, address: string | null): FleetHost {
  const state = {
    address,
    awaySince: null,
    isDraining: false,
    isLost: false,
    refusedUntilMs: 0,
    capacity: null,
    clockOffsetMs: 0,
    certificatesEnd: null,
    answeredMs: 0,
    storedMs: 0,
    watchedMs: 0,
  }
  return { id, name, region, engine, unguarded: engine, promised: [], images: new Set(), ...state }
}

function noFarEngines(): never {
  throw new Error('This server has no way to engines of other machines.')
}

function hostAwayError(awaySince: Date): EngineError {
  return new EngineError('engine_away', 'The host of this unit does not answer.', { awaySince })
}

/** Every call of it fails. */
const absentEngine = guardEngine(
  {} as Engine,
  () => new EngineError('engine_away', 'The host of this unit is not part of this service.'),
)
