// Ports that belong to one endpoint each, for clients that send no SNI. Listeners follow the database: a port is open
// while its endpoint is live, and at most a second longer. The local port identifies the endpoint; otherwise such
// connections behave like those on the shared TLS port.

import { createServer, type Server } from 'node:net'
import { type Clock, SECOND } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { runLoop } from '../../lib/loop.ts'
import type { EndpointPort } from '../../store/endpoint-ports.ts'
import { acceptOptions } from './connection-limits.ts'

const LOOK_EVERY_MS = SECOND / 2

export type EndpointPorts = {
  /** Returns the name of the endpoint that a port belongs to, or null. */
  nameAt(port: number | undefined): string | null
}

/** The ports that serve all endpoints. */
type SharedPorts = { tls: Server; mysql: Server }

export type OpenEndpointPorts = EndpointPorts & {
  /** Handles connections like those to the shared ports, until it is stopped. */
  open(shared: SharedPorts): void
  stop(): Promise<void>
}

type Listening = EndpointPort & { server: Server }

export function createEndpointPorts({
  host,
  findAll,
  clock,
  log,
}: {
  host: string
  /** Returns the ports of live endpoints. */
  findAll: () => Promise<EndpointPort[]>
  clock: Clock
  log: Log
}): OpenEndpointPorts {
  const listening = new Map<number, Listening>()
  /** Ports that another program uses; each is logged once. */
  const taken = new Set<number>()
  const stopping = new AbortController()
  let looking: Promise<void> | null = null

  function listen(target: EndpointPort, { tls, mysql }: SharedPorts): void {
    const { port } = target
    const server = createServer(acceptOptions)
    const entry = { ...target, server }
    server.on('connection', (socket) => {
      const taker = entry.protocol === 'mysql' ? mysql : tls
      taker.emit('connection', socket)
    })
    server.on('error', (error) => {
      if (!taken.has(port)) log.error({ err: error, port }, 'cannot listen on the port of an endpoint')
      taken.add(port)
      server.close()
      if (listening.get(port) === entry) listening.delete(port)
    })
    server.once('listening', () => taken.delete(port))
    listening.set(port, entry)
    server.listen(port, host)
  }

  function close({ port, server }: Listening): void {
    listening.delete(port)
    server.close()
  }

  return {
    nameAt: (port) => listening.get(port ?? 0)?.name ?? null,
    open(gateway) {
      // While the database is unavailable the run fails, and everything stays as it is.
      const run = async () => {
        const target = new Map((await findAll()).map((endpoint) => [endpoint.port, endpoint]))
        if (stopping.signal.aborted) return
        for (const entry of listening.values()) {
          const now = target.get(entry.port)
          if (now) Object.assign(entry, now)
          else close(entry)
        }
        for (const [port, endpoint] of target) if (!listening.has(port)) listen(endpoint, gateway)
      }
      const loop = { name: 'ports of endpoints', everyMs: LOOK_EVERY_MS, timeoutMs: 10 * SECOND, run }
      looking = runLoop(loop, { clock, log, signal: stopping.signal })
    },
    async stop() {
      stopping.abort()
      for (const entry of listening.values()) close(entry)
      await looking
    },
  }
}
