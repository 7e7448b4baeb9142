// Hands visits over to the gateway of the host that has their unit. Limits, secrets, wakes and use are decided there, by the
// same steps as for its own visitors; a connection that was handed over to this gateway is never handed over again.

import { Agent, type ClientRequestArgs } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { createSemaphore } from '../../lib/concurrency/semaphore.ts'
import { IDLE_MS } from '../kept-connections.ts'
import { arrivalOf, type Origin } from '../peer.ts'
import type { Route, Routes } from '../route.ts'
import type { Door, Doors } from '../server-link/doors.ts'
import type { Links } from './links.ts'

/** All hosts are asked for the session of each, and anyone may send one. */
const MAX_CANCELS = 8

export type Handovers = {
  /** Returns where visits of the route are handed over; null: it is for this gateway. */
  doorOf(route: Route): Door | null
  /** Returns where requests for the server itself are handed over; null: there is no such place. */
  ofServer(): Door | null
  begin: Links['begin']
  /** Tells the host that has the session, if one does. */
  cancel(request: Buffer): Promise<void>
  /** Connections for requests of visitors at this address, kept between two of them. */
  agentTo(door: Door, asked: { origin: Origin; portName: string | null }): Agent
}

export function createHandovers({ doors, links }: { doors: Doors; links: Links }): Handovers {
  const few = createSemaphore(MAX_CANCELS)
  const agents = new Map<string, Agent>()
  return {
    doorOf: ({ hostId }) => (hostId === undefined ? null : doors.at(hostId)),
    ofServer: () => doors.ofServer(),
    begin: async (door, visit) => await links.begin(door, visit),
    async cancel(request) {
      const asked = { kind: 'cancel', request: request.toString('base64') } as const
      await few(() => Promise.all(doors.all().map((door) => links.ask(door, asked))))
    },
    agentTo(door, { origin: { address, proto }, portName }) {
      const key = `${door.hostId} ${proto} ${address} ${portName}`
      const isSecure = proto === 'https'
      const visit = { kind: 'requests', address, isSecure, ...(portName !== null && { portName }) } as const
      const agent = agents.get(key) ?? new HandoverAgent(() => links.begin(door, visit))
      agents.set(key, agent)
      for (const [other, { sockets, freeSockets, requests }] of agents) {
        if (agents.size <= MAX_IDLE_AGENTS || other === key) break
        if ([sockets, freeSockets, requests].every((each) => Object.keys(each).length === 0))
          agents.delete(other)
      }
      return agent
    },
  }
}

/** Above this number those without connections are dropped. */
const MAX_IDLE_AGENTS = 256

class HandoverAgent extends Agent {
  readonly #open: () => Promise<TLSSocket | null>

  constructor(open: () => Promise<TLSSocket | null>) {
    super({ keepAlive: true, scheduling: 'lifo', timeout: IDLE_MS })
    this.#open = open
  }

  override createConnection(
    _options: ClientRequestArgs,
    made?: (error: Error | null, connection: Duplex) => void,
  ): undefined {
    const none = Object.assign(new Error('the host is away'), { code: 'ECONNREFUSED' })
    void this.#open().then((socket) => {
      if (socket) made?.(null, socket)
      // Node's types want a connection beside the error.
      else made?.(none, undefined as unknown as Duplex)
    })
  }
}

type Needs = { routes: Routes; handover?: Handovers }

/**
 * Returns where the visits of an endpoint are handed over that came by this connection; null if they are for this gateway. A
 * name that cannot be looked up is this gateway's, which says so.
 */
export async function findDoor(
  { routes, handover }: Needs,
  socket: TLSSocket,
  name: string,
): Promise<{ door: Door; route: Route } | null> {
  if (!handover || arrivalOf(socket)) return null
  const route = await routes.find(name).catch(() => null)
  const door = route && handover.doorOf(route)
  return route && door ? { door, route } : null
}
