// A server that does not lead (decisions/leadership.md). It answers nothing itself, because what a call reads depends on the
// memory of the one that leads and is counted in the database; it hands each connection over, and holds those that come
// while nobody leads until one does.

import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Config } from '../config.ts'
import { type Clock, SECOND } from '../lib/clock.ts'
import type { FleetIdentity } from '../lib/fleet-identity.ts'
import { handToLeader, tellStopping } from '../lib/ipc/forwarding.ts'
import type { Log } from '../lib/log.ts'
import { type Address, addressText } from '../lib/setting-values.ts'
import { serveMetrics } from '../metrics/serve.ts'

/** Longer than it takes until another server leads; then the caller sends it again. */
const HELD_MS = 15 * SECOND
const AGAIN_MS = SECOND / 5
const MAX_CONNECTIONS = 2500

/** When it stops: a call in progress has this time, … */
const ENDS_WITHIN_MS = 8 * SECOND
/** … and a connection that is quiet after an answer a little longer than fetch of Node.js keeps one; … */
const UNUSED_MS = 4.5 * SECOND
/** … or, where no leader tells its caller to send the next call elsewhere, none. */
const QUIET_MS = SECOND / 5

/** `isAsked`: what was said last on it came from the caller. */
type Link = { to: string; isAsked: boolean; heardMs: number }

export type Standby = {
  /** The other server that leads; null while none is known. Connections that were handed to another one end. */
  follow: (leader: Address | null) => void
  /** Stops listening, and returns the connections that wait for a leader. Those that were handed over end. */
  leave: () => Promise<Socket[]>
  close: () => Promise<void>
}

type Around = {
  config: Pick<Config, 'apiAddress' | 'metrics'>
  identity: () => FleetIdentity
  clock: Clock
  log: Log
}

/** Listens until it is closed, or this server leads. */
export async function startStandby({ config, identity, clock, log }: Around): Promise<Standby> {
  const links = new Map<Socket, Link>()
  const waiting = new Set<Socket>()
  let leader: Address | null = null
  let isLeaving = false

  async function pass(caller: Socket): Promise<void> {
    const giveUpMs = clock.monotonicMs() + HELD_MS
    waiting.add(caller)
    while (!isLeaving && !caller.destroyed && clock.monotonicMs() < giveUpMs) {
      const to = leader
      const link = to && (await handToLeader(caller, { leader: to, identity: identity() }))
      if (to && link && !isLeaving) {
        waiting.delete(caller)
        return join(caller, link, addressText(to))
      }
      link?.destroy()
      if (!isLeaving) await clock.sleep(AGAIN_MS)
    }
    if (isLeaving && waiting.has(caller)) return
    waiting.delete(caller)
    caller.destroy()
  }

  function join(caller: Socket, link: Socket, to: string): void {
    const state: Link = { to, isAsked: true, heardMs: clock.monotonicMs() }
    const hear = (isAsked: boolean) => Object.assign(state, { isAsked, heardMs: clock.monotonicMs() })
    caller.on('data', () => hear(true))
    link.on('data', () => hear(false))
    links.set(link, state)
    link.once('close', () => links.delete(link))
    for (const [one, other] of [
      [caller, link],
      [link, caller],
    ] as const) {
      one.pipe(other)
      // An answer that has ended is still on its way.
      one.once('close', () => (other.writableEnded ? other.destroySoon() : other.destroy()))
    }
  }

  const server = createServer({ noDelay: true, keepAlive: true, pauseOnConnect: true }, (caller) => {
    caller.on('error', () => {})
    caller.once('close', () => waiting.delete(caller))
    pass(caller).catch((error: unknown) => {
      log.warn({ err: error }, 'call was not handed to the server that leads')
      caller.destroy()
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  server.listen({ ...config.apiAddress, reusePort: true })
  await once(server, 'listening')
  const shown = await serveMetrics(config.metrics, { metrics: { ...nothingMeasured, health }, log })

  async function health() {
    return { isWell: leader !== null, parts: { leads: false, leader: leader && addressText(leader) } }
  }

  const endLinks = (but: string | null) => {
    for (const [link, { to }] of links) if (to !== but) link.destroy()
  }
  /** Of calls that are handed over, those in progress are answered first. */
  const endUnused = async (quietMs: number) => {
    const giveUpMs = clock.monotonicMs() + ENDS_WITHIN_MS
    while (links.size > 0 && clock.monotonicMs() < giveUpMs) {
      for (const [link, { isAsked, heardMs }] of links)
        if (!isAsked && clock.monotonicMs() - heardMs > quietMs) link.destroy()
      await clock.sleep(QUIET_MS / 4)
    }
  }

  return {
    follow: (to) => {
      leader = to
      if (to) endLinks(addressText(to))
    },
    leave: async () => {
      isLeaving = true
      endLinks(null)
      await shown.close()
      server.close()
      return [...waiting].filter(({ destroyed }) => !destroyed)
    },
    close: async () => {
      isLeaving = true
      if (server.listening) {
        await shown.close()
        server.close()
        const isTold = leader !== null && (await tellStopping({ leader, identity: identity() }))
        await endUnused(isTold ? UNUSED_MS : QUIET_MS)
      }
      endLinks(null)
      for (const caller of waiting) caller.destroy()
    },
  }
}

const nothingMeasured = { contentType: 'text/plain', read: async () => '' }
