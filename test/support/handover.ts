// Gateways of several hosts that know each other, each on loopback with its own door for visits that came to another one. All
// know the same routes, as the server would tell them.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueIdentity } from '../../src/certificates/fleet-ca.ts'
import type { Route } from '../../src/gateway/route.ts'
import { createDoors, type Doors } from '../../src/gateway/server-link/doors.ts'
import { createLoopbacks } from '../../src/gateway/sessions/loopbacks.ts'
import { createHandovers } from '../../src/gateway/handover/hand-over.ts'
import { createLinks } from '../../src/gateway/handover/links.ts'
import { listenForHandovers } from '../../src/gateway/handover/take-over.ts'
import type { GatewayAnswer } from '../../src/gateway/server-link/protocol.ts'
import { sessionLimits } from '../../src/gateway/sessions/session-limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type FleetMember, type FleetIdentity, parseIdentity } from '../../src/lib/fleet-identity.ts'
import { silentLog } from '../../src/lib/log.ts'
import { startGateway, type TestGateway } from './gateway.ts'

export type HostGateway = {
  gateway: TestGateway
  identity: FleetIdentity
  /** Where it takes visits; null once `away`. */
  doorPort: number
  /** A route to a port of this host. Answers the host name that leads there, at every gateway. */
  expose: (port: number, more?: Partial<Route> & { name?: string; secret?: string }) => string
  /** Its door closes, and everything that came through it ends. */
  leave: () => Promise<void>
}

export type HostGateways = {
  hosts: HostGateway[]
  /** Of the same authority, or of a stranger's. */
  issue: (member: FleetMember, isStranger?: boolean) => Promise<FleetIdentity>
  /** As the server lists them. */
  listed: GatewayAnswer['doors']['hosts']
  /** Where the first host's gateway expects the server. */
  serverSocket: string
  /** Ports of units at which something listens for them alone, and where that is reached. */
  loopbacks: Map<number, number>
  close: () => Promise<void>
}

const HOST = '127.0.0.1'

/** Each knows all others once this resolves. */
export async function startHosts(...names: string[]): Promise<HostGateways> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-handover-'))
  const issue = async (member: FleetMember, isStranger = false) => {
    const authority = join(directory, isStranger ? 'other' : 'own')
    return parseIdentity(await issueIdentity(authority, member, new Date()))
  }
  const listed: HostGateways['listed'] = []
  const routes = new Map<string, Route>()
  const listening = new Map<number, number>()
  const serverSocket = join(directory, 'server.sock')
  const started: Awaited<ReturnType<typeof startHost>>[] = []
  for (const name of names) started.push(await startHost(name))

  async function startHost(name: string) {
    const identity = await issue({ role: 'gateway', host: name })
    const id = `host_${name}`
    const links = createLinks({ identity: () => identity, clock: systemClock, log: silentLog })
    let known: Doors | null = null
    const doors: Doors = {
      at: (hostId) => known?.at(hostId) ?? null,
      all: () => known?.all() ?? [],
      ofServer: () => known?.ofServer() ?? null,
      knows: (host, issuedAt) => known?.knows(host, issuedAt) ?? false,
      stop: async () => await known?.stop(),
    }
    const handover = createHandovers({ doors, links })
    const isServers = name === names[0]
    const socketPath = isServers ? serverSocket : null
    const loopbacks = createLoopbacks(async (_unitId, port) => listening.get(port) ?? null, systemClock)
    const door = { socketPath, findNow: async (label: string) => routes.get(label) ?? null, loopbacks }
    const gateway = await startGateway({}, { routes, handover, door })
    const maxConnections = sessionLimits.connections
    const { gateway: served } = gateway
    const inside = {
      doors,
      take: served.takeVisit.bind(served),
      cancel: served.takeCancel.bind(served),
      maxConnections,
      clock: systemClock,
      log: silentLog,
    }
    const open = await listenForHandovers({ host: HOST, port: 0, identity }, inside)
    listed.push({ id, name, since: 0, address: isServers ? null : HOST, port: open.port })
    let isThere = true
    const leave = async () => {
      if (isThere) await open.close(() => {})
      isThere = false
    }
    const close = async () => {
      await doors.stop()
      links.close()
      await leave()
      await gateway.close()
    }
    const expose: HostGateway['expose'] = (port, more) => gateway.expose(port, { hostId: id, ...more })
    /** Looks who is there, as all are by now. */
    const look = async () => {
      const looked = Promise.withResolvers<void>()
      known = createDoors({
        server: { ask: async () => ({ own: id, hosts: listed }) as never },
        serverHost: HOST,
        onLooked: () => {
          links.look(doors.all())
          open.look()
          looked.resolve()
        },
        clock: systemClock,
        log: silentLog,
      })
      await looked.promise
    }
    return { host: { gateway, identity, doorPort: open.port, expose, leave }, look, close }
  }

  await Promise.all(started.map(({ look }) => look()))
  return {
    hosts: started.map(({ host }) => host),
    issue,
    listed,
    serverSocket,
    loopbacks: listening,
    close: async () => {
      await Promise.all(started.map(({ close }) => close()))
      await rm(directory, { recursive: true })
    },
  }
}
