// A gateway on loopback with everything around it made up: servers that stand for units, routes in a map, a waker
// that does what the test says, and a log of what was told about use.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashEndpointSecret, newEndpointName } from '../../src/contract/endpoint-label.ts'
import type { DefaultCertificates } from '../../src/gateway/certificates/current.ts'
import { createEndpointPorts } from '../../src/gateway/listen/endpoint-ports.ts'
import type { Handovers } from '../../src/gateway/handover/hand-over.ts'
import type { Route, Routes, WakeOutcome } from '../../src/gateway/route.ts'
import { createGateway, type Gateway } from '../../src/gateway/server.ts'
import type { Door } from '../../src/gateway/sessions/connect-to-unit.ts'
import { type SessionLimits, sessionLimits } from '../../src/gateway/sessions/session-limits.ts'
import type { Peers } from '../../src/gateway/workers/peers.ts'
import type { TicketKeys } from '../../src/gateway/workers/ticket-keys.ts'
import type { EndpointPort } from '../../src/store/endpoint-ports.ts'
import { type Log, silentLog } from '../../src/lib/log.ts'
import { whenFree } from './taken-port.ts'
import { createTestClock, type TestClock } from './clock.ts'

export const DOMAIN = 'berth.localhost'

/**
 * Where visitors come from that are many and short: the kernel remembers each for a minute, and would not let another
 * test listen on its port at 127.0.0.1 meanwhile.
 */
export const VISITOR = '127.0.0.3'

export type TestGateway = {
  gateway: Gateway
  port: number
  tlsPort: number
  mysqlPort: number
  clock: TestClock
  routes: Map<string, Route>
  /** What belongs to one endpoint each, as the database says. */
  endpointPorts: EndpointPort[]
  /** What the waker was asked for, and what it says. */
  wakes: Route[]
  isAwake: (route: Route) => boolean
  onWake: (route: Route) => Promise<WakeOutcome>
  /** Unit ids, as `begin`, `end` and `touch` were called. */
  use: string[]
  /** A route to a port of this host. Answers the host name that leads there. */
  expose(port: number, more?: Partial<Route> & { name?: string; secret?: string }): string
  /** Looks at what is open, as the gateway does twice a second. */
  later(ms: number): Promise<void>
  close(): Promise<void>
}

let made = 0

export type TestGatewayOptions = {
  /** What is shown in place of the certificate of nobody. */
  certificatesBeside?: (around: {
    followed: DefaultCertificates
    routes: Routes
    clock: TestClock
  }) => Promise<DefaultCertificates>
  tlsPort?: number
  /** The others of several gateways. */
  peers?: Peers
  tickets?: TicketKeys
  /** Whether others listen on the same port. */
  isShared?: boolean
  /** Of a gateway before, for one that is started again. */
  routes?: Map<string, Route>
  log?: Log
  handover?: Handovers
  door?: Door
}

export async function startGateway(
  limits: Partial<SessionLimits> = {},
  {
    certificatesBeside,
    tlsPort,
    peers,
    tickets,
    isShared = false,
    routes = new Map(),
    log = silentLog,
    handover,
    door,
  }: TestGatewayOptions = {},
): Promise<TestGateway> {
  const clock = createTestClock()
  const use: string[] = []
  const wakes: Route[] = []
  const known: Routes = { find: async (name) => routes.get(name) ?? null }
  const followed: DefaultCertificates = {
    find: async () => undefined,
    follow: (follow) => follow(certificate()),
    stop: async () => {},
  }
  const certificates = (await certificatesBeside?.({ followed, routes: known, clock })) ?? followed
  const endpointPorts: EndpointPort[] = []
  const findAll = async () => endpointPorts
  const ports = createEndpointPorts({ host: '127.0.0.1', findAll, clock, log: silentLog })
  const gateway = createGateway({
    domain: DOMAIN,
    ports,
    routes: known,
    waker: {
      findLease: (route) => (self.isAwake(route) ? route : null),
      invalidateLease: () => {},
      wake(route) {
        wakes.push(route)
        return self.onWake(route)
      },
    },
    activity: {
      begin(unitId) {
        use.push(`begin ${unitId}`)
        return () => use.push(`end ${unitId}`)
      },
      touch: (unitId) => use.push(`touch ${unitId}`),
    },
    certificates,
    clock,
    log,
    limits: { ...sessionLimits, ...limits },
    ...(peers && { peers }),
    ...(handover && { handover }),
    ...(door && { door }),
    ...(tickets && { tickets }),
  })
  const self: TestGateway = {
    gateway,
    port: await listen(gateway.http),
    tlsPort: await listen(gateway.tls, tlsPort, isShared),
    mysqlPort: await listen(gateway.mysql),
    clock,
    routes,
    endpointPorts,
    wakes,
    isAwake: (route) => route.state === 'running',
    onWake: async () => ({ kind: 'refused', reason: 'stopped' }),
    use,
    expose(port, { name, secret, ...more } = {}) {
      made += 1
      const label = name ?? newEndpointName('web')
      const route: Route = {
        endpointId: `ep_${made}`,
        unitId: `unit_${made}`,
        protocol: 'http',
        secretHash: secret === undefined ? null : hashEndpointSecret(secret),
        port,
        address: '127.0.0.1',
        state: 'running',
        stoppedReason: null,
        frozen: false,
        generation: 1,
        ...more,
      }
      routes.set(label, route)
      return `${label}${secret === undefined ? '' : `-${secret}`}.${DOMAIN}`
    },
    async later(ms) {
      clock.advance(ms)
      // One round of looking, and what it leads to.
      await new Promise((resolve) => setTimeout(resolve, 20))
      clock.advance(1000)
      await new Promise((resolve) => setTimeout(resolve, 30))
    },
    async close() {
      await ports.stop()
      await gateway.close()
      await certificates.stop()
    },
  }
  ports.open(gateway)
  return self
}

export type Origin = {
  port: number
  /** Requests seen, as `GET /path`. */
  seen: string[]
  /** Their headers, names and values in turn. */
  heads: string[][]
  close(): Promise<void>
}

/** How a unit answers. */
export type Answering = (request: IncomingMessage, response: ServerResponse) => unknown

/** A server that stands for a unit. */
export async function startOrigin(answer: Answering, onPort = 0): Promise<Origin> {
  const seen: string[] = []
  const heads: string[][] = []
  const server = createServer((request, response) => {
    heads.push(request.rawHeaders)
    seen.push(`${request.method} ${request.url}`)
    void answer(request, response)
  })
  const port = await listen(server, onPort)
  return {
    port,
    seen,
    heads,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type RawOrigin = { port: number; connections: Socket[]; close(): Promise<void> }

/** One that says what it is told to, HTTP or not. */
export async function startRawOrigin(onConnection: (socket: Socket) => void): Promise<RawOrigin> {
  const connections: Socket[] = []
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    connections.push(socket)
    onConnection(socket)
  })
  const port = await listen(server)
  return {
    port,
    connections,
    async close() {
      for (const socket of connections) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What a server answers to these bytes, one answer after the other, until it closes or is silent. */
export async function exchangeRaw(port: number, bytes: string | Buffer, quietMs = 150): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: VISITOR })
  const chunks: Buffer[] = []
  await new Promise<void>((resolve) => {
    let timer = setTimeout(resolve, 5000)
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      clearTimeout(timer)
      timer = setTimeout(resolve, quietMs)
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  })
  socket.destroy()
  return Buffer.concat(chunks).toString('latin1')
}

export async function listen(server: Server, port = 0, isShared = false): Promise<number> {
  await whenFree(async () => {
    server.listen({ port, host: '127.0.0.1', ...(isShared && { reusePort: true }) })
    await once(server, 'listening')
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening on a port')
  return address.port
}

let cached: string | null = null

/** Of nobody, for every name under the domain. */
export function certificate(): string {
  if (cached) return cached
  const directory = mkdtempSync(join(tmpdir(), 'berth-gateway-'))
  const [key, cert] = [join(directory, 'key'), join(directory, 'cert')]
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
      .concat(['-subj', `/CN=*.${DOMAIN}`, '-addext', `subjectAltName=DNS:*.${DOMAIN}`])
      .concat(['-keyout', key, '-out', cert]),
    { stdio: 'ignore' },
  )
  cached = readFileSync(key, 'utf8') + readFileSync(cert, 'utf8')
  rmSync(directory, { recursive: true })
  return cached
}
