// The server takes the lead of its database, and serves. One of several servers stands by until no other one leads.

import { systemClock } from '../lib/clock.ts'
import { askEngineEpoch } from '../engine/ipc/client.ts'
import { openDatabase } from '../store/db.ts'
import { engineSocketOf } from './channel.ts'
import { acquireLeadership, awaitLeadership, holderOf } from './leadership.ts'
import type { ProcessContext, ProcessMain, StartedProcess } from './run-process.ts'
import { serve } from './serve.ts'
import { openServerIdentity } from './server-identity.ts'
import { startStandby } from './standby.ts'
import { tryServer } from './try-server.ts'

export const serverProcess: ProcessMain = async (context) =>
  context.config.serverAddress ? await startOneOfSeveral(context) : await startAlone(context)

async function startAlone(context: ProcessContext): Promise<StartedProcess> {
  const epoch = await lead(context)
  const identity = await openServerIdentity(context)
  const service = await serve(context, { epoch, identity })
  context.leads()
  return {
    stop: async () => {
      await service.stop()
      await identity?.stop()
    },
  }
}

/** From here on no other server of this database or this engine, if there is one, can act. */
async function lead(context: ProcessContext): Promise<number> {
  const { config, runDir, databaseUrl, log } = context
  const db = openDatabase(databaseUrl, log)
  try {
    const above = config.role === 'server' ? 0 : await askEngineEpoch({ socketPath: engineSocketOf(runDir) })
    return await acquireLeadership(db, { holder: ownHolder(context), above, clock: systemClock })
  } finally {
    await db.destroy()
  }
}

function ownHolder({ instance, config }: ProcessContext): string {
  return holderOf({ instance: instance.id, boot: systemClock.boot, at: config.serverAddress })
}

async function startOneOfSeveral(context: ProcessContext): Promise<StartedProcess> {
  const { config, databaseUrl, log } = context
  const identity = await openServerIdentity(context)
  if (!identity) throw new Error('A server beside others needs BERTH_HOSTS_ADDRESS.')
  const standby = await startStandby({ config, identity: identity.current, clock: systemClock, log })
  const stopping = new AbortController()
  let service: StartedProcess | null = null

  const waitAndServe = async () => {
    const db = openDatabase(databaseUrl, log, null, 1)
    const epoch = await awaitLeadership(db, {
      holder: ownHolder(context),
      clock: systemClock,
      log,
      signal: stopping.signal,
      onLeader: standby.follow,
    }).finally(() => void db.destroy())
    log.warn({ epoch }, 'this server leads')
    service = await serve(context, { epoch, identity, takeOver: standby.leave })
    context.leads()
  }
  await tryServer(context)
  const serving = waitAndServe().catch((error: unknown) => {
    if (!stopping.signal.aborted)
      context.end(error instanceof Error ? (error.stack ?? error.message) : String(error))
  })
  return {
    stop: async () => {
      stopping.abort(new Error('the server stops'))
      await serving
      await service?.stop()
      await standby.close()
      await identity.stop()
    },
  }
}
