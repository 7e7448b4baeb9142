// The API and the background jobs of the server that leads, on top of the database and the engines.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { Kysely } from 'kysely'
import { serveHostedAgents } from '../agents/serve-hosted.ts'
import { serveDoor } from '../api/http/door-socket.ts'
import { createServer } from '../api/server.ts'
import { type App, createApp } from '../app.ts'
import { type Config, httpUrl } from '../config.ts'
import { recallGateways } from '../domain/endpoints/gateways.ts'
import { ensureFirstAccount } from '../domain/credentials/first-account.ts'
import { recover } from '../domain/units/reconcile.ts'
import { meetHosts } from '../domain/units/watch-hosts.ts'
import { createFleet, type NewHost } from '../engine/fleet.ts'
import { connectEngine } from '../engine/ipc/client.ts'
import { reachPort } from '../gateway/handover/callers.ts'
import { type FarGateways, serveFarGateways } from '../gateway/server-link/far-server.ts'
import { serveWakes } from '../gateway/server-link/server.ts'
import { takeCalls } from '../lib/ipc/forwarding.ts'
import { getAccount } from '../lib/system-users.ts'
import { ownHostName } from '../lib/own-host-name.ts'
import { newId } from '../lib/ids.ts'
import { systemClock } from '../lib/clock.ts'
import { fileFailpoints, noFailpoints } from '../lib/failpoints.ts'
import type { Log } from '../lib/log.ts'
import { createPublicFetch } from '../lib/public-fetch.ts'
import { type DeliverMail, folderTransport, smtpTransport } from '../integrations/mail-transport.ts'
import { openStripe } from '../integrations/stripe.ts'
import { startJobs } from '../jobs.ts'
import { serveMetrics } from '../metrics/serve.ts'
import { createServerMetrics } from '../metrics/server-metrics.ts'
import { type Database, openDatabase } from '../store/db.ts'
import { meetLocalHost } from '../store/hosts.ts'
import { migrate } from '../store/migrate.ts'
import {
  callersSocketOf,
  doorSocketOf,
  engineSocketOf,
  keyFileIn,
  mailDirOf,
  renewalSocketOf,
  wakeSocketOf,
} from './channel.ts'
import { refuseUnusable } from './migrate.ts'
import { openDataKey } from './data-key.ts'
import { holdLeadership } from './leadership.ts'
import type { FollowedIdentity } from './identity.ts'
import type { ProcessContext, StartedProcess } from './run-process.ts'
import { openFarEngines } from './far-engines.ts'
import { signRenewalsOver } from './renewals.ts'

type Lead = {
  epoch: number
  /** Of its own, where there are other hosts. */
  identity: FollowedIdentity | null
  /** Of one of several servers: ends its standing by, and returns the callers that wait. */
  takeOver?: () => Promise<Socket[]>
}

/** Runs the service. From `epoch` on, no other server can act. */
export async function serve(
  context: ProcessContext,
  { epoch, identity, takeOver }: Lead,
): Promise<StartedProcess> {
  const { config, runDir, stateDir, databaseUrl, log } = context
  const onLost = () => context.end('Another server has taken the lead.')
  const db = openDatabase(databaseUrl, log, { epoch, onLost })
  // Calls that wait for a connection must not delay the renewals.
  const heldBy = takeOver ? openDatabase(databaseUrl, log, { epoch, onLost }, 1) : db
  const holding = holdLeadership(heldBy, {
    epoch,
    onLost,
    clock: systemClock,
    log,
    isOneOfSeveral: takeOver !== undefined,
  })
  if (takeOver) await prepareDatabase(context, db)
  const metrics = createServerMetrics()
  const app = createApp({
    config,
    db,
    fleet: createFleet(
      config.role === 'server' ? null : await openLocalHost(context, db, { epoch, onLost }),
      openFarEngines({ identity, epoch }),
    ),
    clock: systemClock,
    log,
    secretKey: await openDataKey({ db, keyFile: keyFileIn(stateDir) }),
    failpoints: config.failpoints ? fileFailpoints(join(stateDir, 'failpoints')) : noFailpoints,
    deliverMail: mailTransport(config, { runDir, log }),
    observer: metrics.observer,
    payments: config.payments && (await openStripe(config.payments)),
    fetchPublic: createPublicFetch(),
    reachPort: async (asked) => await reachPort(callersSocketOf(runDir), asked),
    ...(identity && { signRenewal: signRenewalsOver(renewalSocketOf(runDir)) }),
  })
  await recallGateways(app)
  // Before any call can use a unit, the engine's machines and the database's units must agree.
  await recover(app)
  if (config.role === 'server') await meetHosts(app)
  const loops = startJobs(app)
  const near = config.role === 'server' ? null : await serveOwnGateway(app, runDir)
  const server = createServer(app)
  await server.listen({ ...config.apiAddress, ...(takeOver && { reusePort: true }) })
  await near?.take(server)
  const calls = takesCalls(server)
  const far = identity && (await serveOtherHosts(app, identity, calls.take))
  for (const caller of (await takeOver?.()) ?? []) calls.begin(caller)
  const hosted = serveHostedAgents(app, {
    url: ownUrl(config),
    vendorUrls: { claude: config.claudeUrl },
    workDir: stateDir,
  })
  const shown = await serveMetrics(config.metrics, { metrics: metrics.of(app), log })
  return {
    stop: async () => {
      calls.stop()
      if (takeOver) await leaveCallers(server)
      // Their last calls are answered.
      await hosted.stop()
      await shown.close()
      await near?.close()
      await server.close()
      await far?.close()
      await loops.stop()
      await holding.stop()
      await db.destroy()
      if (heldBy !== db) await heldBy.destroy()
    },
  }
}

/** At which this machine reaches the API. */
function ownUrl({ apiAddress: { host, port } }: Config): string {
  return httpUrl({ host: ['0.0.0.0', '::'].includes(host) ? 'localhost' : host, port })
}

/** What the migration process does where there is one server: here it waits for the lead, so that no other one runs. */
async function prepareDatabase({ config }: ProcessContext, db: Kysely<Database>): Promise<void> {
  await refuseUnusable(db)
  await migrate(db)
  await ensureFirstAccount({ db, clock: systemClock, freeCreditsCents: config.freeCreditsCents })
}

/** As long as a caller may take between two calls. */
const LEAVES_MS = 1500

/** With its next answer each client is told that its connection ends, and sends its next call to the other server. */
async function leaveCallers({ server }: ReturnType<typeof createServer>): Promise<void> {
  server.prependListener('request', (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false
  })
  await delay(LEAVES_MS)
}

/** Calls that came to another server, until this one stops. One of a server that stops ends with its next answer. */
function takesCalls(server: ReturnType<typeof createServer>) {
  let isStopping = false
  const handed = new Set<Socket>()
  const ending = new WeakSet<Socket>()
  server.server.prependListener('request', ({ socket }, response: ServerResponse) => {
    if (ending.has(socket)) response.shouldKeepAlive = false
  })
  const begin = (caller: Socket) => {
    server.server.emit('connection', caller)
    caller.resume()
  }
  return {
    begin,
    take: (link: TLSSocket) => {
      if (isStopping) return void link.destroy()
      handed.add(link)
      link.once('close', () => handed.delete(link))
      // From which server each came is not known. The callers of the others connect again, which takes a millisecond.
      void takeCalls(link, begin, () => handed.forEach((each) => ending.add(each)))
    },
    stop: () => {
      isStopping = true
    },
  }
}

/** The gateway of this machine asks and passes calls on by sockets. */
async function serveOwnGateway(app: App, runDir: string) {
  const socketGid = (await getAccount('berth-gateway')).gid
  const wakes = await serveWakes(app, { socketPath: wakeSocketOf(runDir), socketGid })
  let door: Awaited<ReturnType<typeof serveDoor>> | null = null
  return {
    take: async (server: ReturnType<typeof createServer>) => {
      door = await serveDoor(server, { socketPath: doorSocketOf(runDir), socketGid })
    },
    close: async () => {
      await wakes.close()
      await door?.close()
    },
  }
}

/** Null without other hosts. */
async function serveOtherHosts(
  app: App,
  identity: FollowedIdentity,
  takeCalls: (link: TLSSocket) => void,
): Promise<FarGateways | null> {
  const { hostsAddress } = app.config
  if (!hostsAddress) return null
  const far = await serveFarGateways(app, { ...hostsAddress, identity: identity.current() }, takeCalls)
  identity.onRenewed(far.show)
  return far
}

/** The host of this data directory, by its instance; its name is that of the machine. */
async function openLocalHost(
  { instance, runDir }: ProcessContext,
  db: Kysely<Database>,
  lead: { epoch: number; onLost: () => void },
): Promise<NewHost> {
  const engine = connectEngine({ address: { socketPath: engineSocketOf(runDir) }, ...lead })
  const name = ownHostName(instance.id)
  const host = await meetLocalHost(db, { instance: instance.id, name, newId: newId('host') })
  return { ...host, engine }
}

function mailTransport(
  { mail, dataDir }: Config,
  { runDir, log }: { runDir: string; log: Log },
): DeliverMail {
  const { smtpUrl, from } = mail
  if (smtpUrl !== null) return smtpTransport({ url: smtpUrl, from })
  const onWritten = (file: string) =>
    log.info(
      { file: join(dataDir, 'mail', file) },
      'mail written to a file, because BERTH_SMTP_URL is not set',
    )
  return folderTransport({ dir: mailDirOf(runDir), from, onWritten })
}
