// The egress process: what restricted machines send to TCP ports 80 and 443 comes here by the firewall (firewall-rules.ts of
// the engine's network). A connection is let through if the name in it is listed, to an address that this process has
// resolved itself. All input is untrusted; each machine has a limited share.

import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { Server } from 'node:net'
import { logLimitReached } from '../lib/limit-reached.ts'
import type { Clock } from '../lib/clock.ts'
import { createConcurrencyLimit } from '../lib/concurrency/concurrency-limit.ts'
import { type EgressLink, followEgressLink } from '../lib/egress/link-client.ts'
import { createTelling } from '../lib/egress/telling.ts'
import type { Log } from '../lib/log.ts'
import { upstreamContext } from './broker/upstream.ts'
import { openAuthorities } from './broker/authorities.ts'
import { createBroker } from './broker/broker.ts'
import { isAllowed, isDenied, secretsFor } from './decide.ts'
import type { Door } from './door.ts'
import { createHttpDoor } from './http-door.ts'
import type { ResolveName } from './names.ts'
import { createOpenConnections, type OpenConnection } from './open-connections.ts'
import { createShares } from './shares.ts'
import { createTlsDoor } from './tls-door.ts'

const LIMITS = { connections: 8192, connectionsPerTeam: 2048, connectionsPerMachine: 512 } as const
/** How long open connections go on while the engine is away: longer than it takes to start again. */
const AWAY_MS = 20_000

const TLS_PORT = 443

export type EgressOptions = {
  address: string
  ports: { http: number; tls: number }
  socketPath: string
  resolve: ResolveName
  /** Where the authorities of teams are kept. */
  stateDir: string
  /** By which the hosts of secrets are verified; null for those that come with Node. */
  roots: () => Promise<string | null>
  log: Log
  clock: Clock
}

export type Egress = { close(): Promise<void> }

export async function startEgress(options: EgressOptions): Promise<Egress> {
  const { log, clock } = options
  const open = createOpenConnections()
  const ofMachines = createConcurrencyLimit(LIMITS.connections, LIMITS.connectionsPerMachine)
  const ofTeams = createConcurrencyLimit(LIMITS.connections, LIMITS.connectionsPerTeam)
  const shares = createShares(clock, () => performance.eventLoopUtilization().active)
  let away: NodeJS.Timeout | undefined
  const telling = createTelling(() => door.link)

  /** A machine whose team is not known is one by itself. */
  const teamOf = (machine: string) => String(door.link.rulesOf(machine)?.team ?? machine)

  const door: Door = {
    link: notYet,
    resolve: options.resolve,
    open,
    note: telling.note,
    enter(socket) {
      const machine = socket.remoteAddress ?? ''
      if (door.link.rulesOf(machine) === null) {
        socket.resetAndDestroy()
        return null
      }
      const team = teamOf(machine)
      if (ofMachines.tryAcquire(machine)) {
        if (ofTeams.tryAcquire(team))
          return () => {
            ofMachines.release(machine)
            ofTeams.release(team)
          }
        ofMachines.release(machine)
      }
      const isOwn =
        ofMachines.count(machine) >= LIMITS.connectionsPerMachine ||
        ofTeams.count(team) >= LIMITS.connectionsPerTeam
      logLimitReached({ log, clock }, { bound: 'connections by name', by: isOwn ? machine : null })
      socket.resetAndDestroy()
      return null
    },
    turn: (machine, units, client) => shares.turn({ team: teamOf(machine), machine }, units, client),
  }
  const authorities = await openAuthorities(options.stateDir, clock)
  const broker = createBroker(door, { authorities, trusted: upstreamContext(options.roots) })
  const sift = (machine: string) =>
    open.sift(machine, (connection) => staysOpen(door.link, machine, connection))
  const servers = [
    [createHttpDoor(door), options.ports.http],
    [createTlsDoor(door, broker), options.ports.tls],
  ] as const
  for (const [server, port] of servers) await listen(server, options.address, port)

  door.link = followEgressLink(options.socketPath, {
    onRules: (machine, rules) => {
      broker.forget(machine)
      // One that is not restricted any more keeps what passes unread.
      if (rules === null) open.sift(machine, ({ used }) => used === undefined)
      else if (door.link.isWhole()) sift(machine)
    },
    authorityOf: (team) => authorities.certificateOf(team),
    onEnded: (machine) => open.sift(machine, () => false),
    onWhole: (restricted) => {
      clearTimeout(away)
      for (const machine of open.machines()) if (restricted.has(machine)) sift(machine)
    },
    onAway: () => {
      clearTimeout(away)
      away = setTimeout(() => {
        for (const machine of open.machines()) open.sift(machine, () => false)
      }, AWAY_MS)
    },
  })

  return {
    async close() {
      clearTimeout(away)
      for (const machine of open.machines()) open.sift(machine, () => false)
      await Promise.all(
        servers.map(async ([server]) => {
          const closed = once(server, 'close')
          server.close()
          if ('closeAllConnections' in server) server.closeAllConnections()
          await Promise.race([closed, clock.sleep(1000)])
        }),
      )
      await telling.close()
      await door.link.close()
    },
  }
}

function staysOpen(link: EgressLink, machine: string, open: OpenConnection): boolean {
  const { name, port, address, used } = open
  if (!isAllowed(link, machine, name, port)) return false
  const denies = (link.rulesOf(machine)?.egress.deny ?? []).length > 0
  if (denies && (address === undefined || isDenied(link, machine, address))) return false
  if (port !== TLS_PORT) return true
  const placeholders = secretsFor(link, machine, name).map(({ placeholder }) => placeholder)
  // A host with a secret is read from now on, and one without any not any more.
  if (used === undefined) return placeholders.length === 0
  return placeholders.length > 0 && [...used].every((placeholder) => placeholders.includes(placeholder))
}

/** The ports are ready before the first listing is read. */
const notYet: EgressLink = {
  rulesOf: () => null,
  isWhole: () => false,
  pin: async () => false,
  tellSeen: async () => {},
  close: async () => {},
}

async function listen(server: Server | HttpServer, host: string, port: number): Promise<void> {
  server.listen({ host, port })
  await once(server, 'listening')
}
