// Follows the changes of a team and applies them to the cache. One tab holds the stream for all tabs of a team: a browser opens six
// connections to a host, and a seventh tab would hang. Without Web Locks (plain HTTP on a LAN) each visible tab has a
// stream of its own, and lets go of it when it is hidden.

import { berthOf } from './client.ts'
import { aWhileOrOnline, untilOffline } from './network.ts'
import { applyEvent, type LiveEvent, readAnew } from './apply-event.ts'

export type LiveStatus =
  | { is: 'connecting' }
  | { is: 'live' }
  /** Since then nothing is known to be true any more. */
  | { is: 'lost'; since: number }

type Told = { status: LiveStatus } | { event: LiveEvent } | { ask: true }

export type Live = {
  status: () => LiveStatus
  watch: (watcher: () => void) => () => void
  /** Once the stream runs, or when it takes long: lists that are read then miss nothing that comes after. */
  begun: () => Promise<void>
}

const LONGEST_WAIT_MS = 1500
const AGAIN_MS = { first: 500, longest: 15_000 }

const teams = new Map<string, Live>()

/** Begins at the first call for a team, and goes on as long as the page is open. */
export function liveOf(team: string): Live {
  const known = teams.get(team)
  if (known) return known
  const made = begin(team)
  teams.set(team, made)
  return made
}

function begin(team: string): Live {
  let status: LiveStatus = { is: 'connecting' }
  const watchers = new Set<() => void>()
  const channel = new BroadcastChannel(`berth-events-${team}`)
  let isLeader = false
  const { promise, resolve } = Promise.withResolvers<void>()
  // Lists that did not wait any longer were read before the stream: what changed in between is in no event.
  let isLate = false
  setTimeout(() => {
    isLate = status.is === 'connecting'
    resolve()
  }, LONGEST_WAIT_MS)

  const become = (next: LiveStatus) => {
    if (next.is === 'live' && (status.is === 'lost' || isLate)) {
      isLate = false
      readAnew(team)
    }
    status = next
    if (next.is === 'live') resolve()
    for (const watcher of watchers) watcher()
  }
  const tell = (told: Told) => {
    if (isLeader) channel.postMessage(told)
  }
  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if ('ask' in data) tell({ status })
    else if (isLeader) return
    else if ('status' in data) become(data.status)
    else applyEvent(team, data.event)
  }
  const follow = (signal?: AbortSignal) =>
    followForever(team, {
      signal,
      onStatus: (next) => {
        become(next)
        tell({ status: next })
      },
      onEvent: (event) => {
        applyEvent(team, event)
        tell({ event })
      },
    })
  // Null over plain HTTP, whatever the types say.
  const locks = navigator.locks as LockManager | undefined
  if (locks) {
    void locks.request(`berth-events-${team}`, async () => {
      isLeader = true
      await follow()
    })
    channel.postMessage({ ask: true } satisfies Told)
  } else followWhileVisible(follow)

  return {
    status: () => status,
    watch: (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    begun: () => promise,
  }
}

type Follow = (signal?: AbortSignal) => Promise<void>

function followWhileVisible(follow: Follow): void {
  let open: AbortController | null = null
  const look = () => {
    if (document.visibilityState === 'hidden') {
      open?.abort()
      open = null
    } else if (open === null) {
      open = new AbortController()
      void follow(open.signal)
    }
  }
  document.addEventListener('visibilitychange', look)
  look()
}

async function followForever(
  team: string,
  {
    signal,
    onStatus,
    onEvent,
  }: {
    signal: AbortSignal | undefined
    onStatus: (status: LiveStatus) => void
    onEvent: (event: LiveEvent) => void
  },
): Promise<void> {
  let lostSince: number | null = null
  let isFirst = true
  for (let waitMs = AGAIN_MS.first; !signal?.aborted; waitMs = Math.min(waitMs * 2, AGAIN_MS.longest)) {
    const network = untilOffline(signal)
    try {
      for await (const event of berthOf(team).events({ signal: network.signal })) {
        // The first event, always `reset`, says that the stream runs. What is shown then may be older.
        if (event.event === 'reset' && isFirst) isFirst = false
        else if (event.event !== 'reset' || lostSince === null) onEvent(event)
        if (event.event === 'reset' || lostSince !== null) onStatus({ is: 'live' })
        lostSince = null
        waitMs = AGAIN_MS.first
      }
    } catch {
      // Whatever ended it, the bar says since when, and the next attempt follows.
    } finally {
      network.end()
    }
    if (signal?.aborted) return
    lostSince ??= Date.now()
    onStatus({ is: 'lost', since: lostSince })
    await aWhileOrOnline(waitMs)
  }
}
