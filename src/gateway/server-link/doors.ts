// The other hosts, as the server lists them: whose gateways may hand visits over, and where they take them. While the server
// is away, the last list holds.

import { type Clock, SECOND } from '../../lib/clock.ts'
import { SIGNED_BEFORE_MS } from '../../lib/fleet-identity.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import type { Address } from '../../lib/setting-values.ts'
import type { ServerClient } from './client.ts'

/** How long the gateway of a host that was removed may still hand visits over. */
const LOOK_EVERY_MS = 2 * SECOND

/** Where another host's gateway takes visits. */
export type Door = Address & { hostId: string; name: string }

export type Doors = {
  /** Returns null for this gateway's own host, and for one that takes no visits. */
  at(hostId: string): Door | null
  all(): Door[]
  /** Of the host that the server runs on; null on that host, and while it takes no visits. */
  ofServer(): Door | null
  /** Whether a host of this name is another one of the service. `issuedAt`: of its certificate. */
  knows(name: string, issuedAt: Date): boolean
  stop(): Promise<void>
}

export function createDoors({
  server,
  serverHost,
  onLooked,
  clock,
  log,
}: {
  server: Pick<ServerClient, 'ask'>
  /** The address of the server's machine; null on that machine. */
  serverHost: string | null
  /** Called after each look, also one in vain. */
  onLooked: () => void
  clock: Clock
  log: Log
}): Doors {
  let doors = new Map<string, Door>()
  let since = new Map<string, number>()
  let ofServer: Door | null = null
  const look = async () => {
    const { own, hosts } = await server.ask('doors', {})
    const others = hosts.filter(({ id }) => id !== own)
    since = new Map(others.map((host) => [host.name, host.since]))
    const without = others.find(({ address }) => address === null)?.id ?? null
    doors = new Map(
      others.flatMap(({ id, name, address, port }) => {
        const host = address ?? serverHost
        return port === null || host === null ? [] : [[id, { hostId: id, name, host, port }]]
      }),
    )
    ofServer = without === null ? null : (doors.get(without) ?? null)
  }
  const run = async () => {
    await look().catch((error: unknown) => log.debug({ error: String(error) }, 'hosts not listed'))
    onLooked()
  }
  const stopping = new AbortController()
  const loop = { name: 'gateways of other hosts', everyMs: LOOK_EVERY_MS, timeoutMs: 10 * SECOND, run }
  const looking = runLoop(loop, { clock, log, signal: stopping.signal })
  return {
    at: (hostId) => doors.get(hostId) ?? null,
    all: () => [...doors.values()],
    ofServer: () => ofServer,
    knows: (name, issuedAt) => issuedAt.getTime() + SIGNED_BEFORE_MS >= (since.get(name) ?? Infinity),
    stop: async () => {
      stopping.abort()
      await looking
    },
  }
}
