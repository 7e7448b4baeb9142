// The real API over a socket, with real Postgres, the engine in memory and a clock the test can set.

import type { AddressInfo, Socket } from 'node:net'
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { createServer } from '../../src/api/server.ts'
import { openPackages } from '../../src/api/downloads/packages.ts'
import type { Dashboard } from '../../src/api/web/dashboard.ts'
import type { Protocol } from '../../src/api/mcp/transport.ts'
import { limits } from '../../src/contract/limits.ts'
import { type App, createApp } from '../../src/app.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import { deliverMails } from '../../src/domain/mail/deliver.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { firstHost } from './hosts.ts'
import { createFakeEngine, type FakeEngine } from './fake-engine/fake-engine.ts'
import { SecretKey } from '../../src/lib/crypto.ts'
import { type Observer, unobserved } from '../../src/lib/observer.ts'
import { type Failpoints, noFailpoints } from '../../src/lib/failpoints.ts'
import type { Letter } from '../../src/integrations/mail-transport.ts'
import { openStripe } from '../../src/integrations/stripe.ts'
import { startJobs } from '../../src/jobs.ts'
import { openDatabase } from '../../src/store/db.ts'
import { createTestClock, type TestClock } from './clock.ts'
import { faultOf } from './document.ts'
import { lineSink } from './logged.ts'
import { createTestDatabase } from './postgres.ts'
import { createPublicFetch, type PublicFetch } from '../../src/lib/public-fetch.ts'

export type Answer<T = unknown> = { status: number; headers: Headers; body: T }

export type CallOptions = {
  key?: string
  cookie?: string
  /** A string or bytes go as they are, everything else as JSON. */
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export type Service = {
  app: App
  engine: FakeEngine
  clock: TestClock
  baseUrl: string
  port: number
  /** Every line the service logged. */
  logged: string[]
  /** What has been mailed to an address, oldest first. */
  mailTo(address: string): Promise<Letter[]>
  fetch(method: string, path: string, options?: CallOptions): Promise<Response>
  /** A call with its JSON answer. */
  call<T = unknown>(method: string, path: string, options?: CallOptions): Promise<Answer<T>>
  /** The connections that are open, as the server sees them. */
  connections: ReadonlySet<Socket>
  /** Ends every connection and listens no more, until the answer is called: a restart of the server, as clients see it. */
  stopListening(): Promise<() => Promise<void>>
  close(): Promise<void>
}

export type ServiceOptions = Partial<
  Pick<
    Config,
    | 'rates'
    | 'commandsAtOnce'
    | 'publicUrl'
    | 'trustedProxies'
    | 'apiHosts'
    | 'clientMetadata'
    | 'clientHosts'
    | 'frozenForMs'
    | 'gatewayPorts'
    | 'signIn'
    | 'supportEmail'
    | 'payments'
    | 'mail'
  >
> & {
  loops?: boolean
  /** In place of the one in memory, which a test of it does not use then. */
  realEngine?: Engine
  /** Its way to the database that is at this URL. Default: straight there. */
  reach?: (databaseUrl: string) => Promise<string>
  failpoints?: Failpoints
  reachPort?: App['reachPort']
  observer?: Observer
  fetchPublic?: PublicFetch
  /** Serves this at /mcp in place of the tools. */
  openMcp?: () => Promise<Protocol>
  /** Default: none, whether one is built or not. */
  dashboard?: Dashboard
  /** Serves those below this directory. Default: those of the checkout, if they are built. */
  packages?: string
}

/** Rates are wide here, so that only tests of rates meet them. */
const wideRates = { requests: 100_000, creations: 100_000, execs: 100_000 }

/** Tests call faster than one agent may, unless they test the rates of the contract (spec 8). */
export const contractRates = {
  requests: limits.requestsPerMinute,
  creations: limits.creationsPerMinute,
  execs: limits.execsPerMinute,
}

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const database = await createTestDatabase()
  const logged: string[] = []
  const letters: Letter[] = []
  const log = pino({ level: 'debug' }, lineSink(logged))
  const clock = createTestClock()
  const engine = createFakeEngine({ clock })
  const db = openDatabase((await options.reach?.(database.url)) ?? database.url, log)
  const config: Config = {
    ...loadConfig({}),
    publicUrl: options.publicUrl ?? 'http://berth.test',
    trustedProxies: options.trustedProxies ?? [],
    apiHosts: options.apiHosts ?? [],
    clientMetadata: options.clientMetadata ?? false,
    clientHosts: options.clientHosts ?? [],
    rates: options.rates ?? wideRates,
    commandsAtOnce: options.commandsAtOnce ?? loadConfig({}).commandsAtOnce,
    gatewayPorts: options.gatewayPorts ?? null,
    signIn: options.signIn ?? { github: null, google: null },
    supportEmail: options.supportEmail ?? null,
    payments: options.payments ?? null,
    mail: options.mail ?? { ...loadConfig({}).mail, smtpUrl: 'smtp://mail.test' },
    ...(options.frozenForMs === undefined ? {} : { frozenForMs: options.frozenForMs }),
  }
  const app = createApp({
    config,
    db,
    fleet: createFleet(await firstHost(db, options.realEngine ?? engine)),
    clock,
    log,
    secretKey: new SecretKey(randomBytes(32)),
    failpoints: options.failpoints ?? noFailpoints,
    deliverMail: async (letter) => void letters.push(letter),
    observer: options.observer ?? unobserved,
    payments: config.payments && (await openStripe(config.payments)),
    fetchPublic: options.fetchPublic ?? createPublicFetch(),
    reachPort: options.reachPort,
  })
  const loops = options.loops === false ? null : startJobs(app)
  const open = new Set<Socket>()
  const listen = async (port: number) => {
    const packages = async () => await openPackages(options.packages)
    const made = createServer(app, undefined, options.openMcp, options.dashboard ?? null, packages)
    made.server.on('connection', (socket: Socket) => {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
    })
    await made.listen({ host: '127.0.0.1', port })
    return made
  }
  let server = await listen(0)
  const { port } = server.server.address() as AddressInfo
  const baseUrl = `http://127.0.0.1:${port}`

  const request = (method: string, path: string, sent: CallOptions = {}) =>
    fetch(baseUrl + path, { method, redirect: 'manual', ...toInit(sent) })
  return {
    app,
    engine,
    clock,
    baseUrl,
    port,
    logged,
    connections: open,
    mailTo: async (address) => {
      const posted = app.db.selectFrom('mails').select('id').limit(1)
      while (await posted.executeTakeFirst()) await deliverMails(app)
      return letters.filter(({ to }) => to === address)
    },
    fetch: request,
    call: async <T>(method: string, path: string, sent?: CallOptions) => {
      const { status, headers, body } = await answerOf(await request(method, path, sent))
      // Every answer of every test: nothing leaves in a field that nobody described (reliability S3).
      const fault = faultOf(method, path, status, body)
      if (fault !== null) throw new Error(fault)
      return { status, headers, body: body as T }
    },
    stopListening: async () => {
      // A process that ends takes its WebSockets along, which Fastify leaves open.
      const closed = server.close()
      for (const socket of open) socket.destroy()
      await closed
      return async () => void (server = await listen(port))
    },
    close: async () => {
      await server.close()
      await loops?.stop()
      await db.destroy()
      await database.drop()
    },
  }
}

async function answerOf(response: Response): Promise<Answer> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    // It has no end: what it begins with is its answer.
    const reader = response.body?.getReader()
    const first = await reader?.read()
    await reader?.cancel()
    return {
      status: response.status,
      headers: response.headers,
      body: Buffer.from(first?.value ?? []).toString(),
    }
  }
  return { status: response.status, headers: response.headers, body: await response.json() }
}

function toInit({ key, cookie, body, headers, signal }: CallOptions): RequestInit {
  const asIs = typeof body === 'string' || body instanceof Uint8Array
  return {
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(cookie === undefined ? {} : { cookie }),
      ...(body === undefined || asIs ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: asIs ? (body as NonNullable<RequestInit['body']>) : JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  }
}
