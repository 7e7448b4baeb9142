// The API and the background jobs, on top of the database and the engine's socket.

import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { serveHostedAgents } from '../agents/serve-hosted.ts'
import { serveDoor } from '../api/http/door-socket.ts'
import { createServer } from '../api/server.ts'
import { type App, createApp } from '../app.ts'
import { type Config, httpUrl } from '../config.ts'
import { recallGateways } from '../domain/endpoints/gateways.ts'
import { recover } from '../domain/units/reconcile.ts'
import type { Engine } from '../engine/engine.ts'
import { createFleet, type NewHost } from '../engine/fleet.ts'
import { askEngineEpoch, connectEngine } from '../engine/ipc/client.ts'
import { reachPort } from '../gateway/handover/callers.ts'
import { type FarGateways, serveFarGateways } from '../gateway/server-link/far-server.ts'
import { serveWakes } from '../gateway/server-link/server.ts'
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
import {
  callersSocketOf,
  doorSocketOf,
  engineSocketOf,
  keyFileIn,
  mailDirOf,
  renewalSocketOf,
  wakeSocketOf,
} from './channel.ts'
import { openDataKey } from './data-key.ts'
import { holdLeadership, acquireLeadership } from './leadership.ts'
import type { FollowedIdentity } from './identity.ts'
import type { ProcessMain, ProcessContext } from './run-process.ts'
import { openFarEngines } from './far-engines.ts'
import { signRenewalsOver } from './renewals.ts'
import { openServerIdentity } from './server-identity.ts'

export const serverProcess: ProcessMain = async (context) => {
  const { config, runDir, stateDir, databaseUrl, log } = context
  const socketPath = engineSocketOf(runDir)
  const hasEngine = config.role !== 'server'
  const epoch = await lead(context, hasEngine ? socketPath : null)
  const onLost = () => context.end('Another server has taken the lead.')
  const db = openDatabase(databaseUrl, log, { epoch, onLost })
  const holding = holdLeadership(db, { epoch, onLost, clock: systemClock, log })
  const metrics = createServerMetrics()
  const identity = await openServerIdentity(context)
  const app = createApp({
    config,
    db,
    fleet: createFleet(
      hasEngine
        ? await openLocalHost(context, db, connectEngine({ address: { socketPath }, epoch, onLost }))
        : null,
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
  const loops = startJobs(app)
  const near = hasEngine ? await serveOwnGateway(app, runDir) : null
  const far = identity && (await serveOtherHosts(app, identity))
  const server = createServer(app)
  await server.listen(config.apiAddress)
  await near?.take(server)
  const hosted = serveHostedAgents(app, {
    url: ownUrl(config),
    claudeUrl: config.claudeUrl,
    workDir: stateDir,
  })
  const shown = await serveMetrics(config.metrics, { metrics: metrics.of(app), log })
  return {
    stop: async () => {
      // Their last calls are answered.
      await hosted.stop()
      await shown.close()
      await far?.close()
      await near?.close()
      await server.close()
      await loops.stop()
      await identity?.stop()
      await holding.stop()
      await db.destroy()
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

/** At which this machine reaches the API. */
function ownUrl({ apiAddress: { host, port } }: Config): string {
  return httpUrl({ host: ['0.0.0.0', '::'].includes(host) ? 'localhost' : host, port })
}

/** Null without other hosts. */
async function serveOtherHosts(app: App, identity: FollowedIdentity): Promise<FarGateways | null> {
  const { hostsAddress } = app.config
  if (!hostsAddress) return null
  const far = await serveFarGateways(app, { ...hostsAddress, identity: identity.current() })
  identity.onRenewed(far.show)
  return far
}

/** The host of this data directory, by its instance; its name is that of the machine. */
async function openLocalHost(
  { instance }: ProcessContext,
  db: Kysely<Database>,
  engine: Engine,
): Promise<NewHost> {
  const name = ownHostName(instance.id)
  const host = await meetLocalHost(db, { instance: instance.id, name, newId: newId('host') })
  return { ...host, engine }
}

/** From here on no other server of this database or this engine, if there is one, can act. */
async function lead(
  { instance, databaseUrl, log }: ProcessContext,
  socketPath: string | null,
): Promise<number> {
  const db = openDatabase(databaseUrl, log)
  try {
    const holder = `${instance.id} ${systemClock.boot}`
    return await acquireLeadership(db, {
      holder,
      above: socketPath === null ? 0 : await askEngineEpoch({ socketPath }),
      clock: systemClock,
    })
  } finally {
    await db.destroy()
  }
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
