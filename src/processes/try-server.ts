// One of several servers makes the API once while it stands by, and closes it unused: what is read and compiled for that is there
// when it takes the lead, and callers wait. On a busy machine that is more than half of its start.

import { createServer } from '../api/server.ts'
import { createApp } from '../app.ts'
import { createFleet } from '../engine/fleet.ts'
import { systemClock } from '../lib/clock.ts'
import { newSecretKey } from '../lib/crypto.ts'
import { noFailpoints } from '../lib/failpoints.ts'
import { createPublicFetch } from '../lib/public-fetch.ts'
import { createServerMetrics } from '../metrics/server-metrics.ts'
import { openDatabase } from '../store/db.ts'
import type { ProcessContext } from './run-process.ts'

/** It listens nowhere, and connects to nothing. */
export async function tryServer({
  config,
  databaseUrl,
  log,
}: Pick<ProcessContext, 'config' | 'databaseUrl' | 'log'>): Promise<void> {
  const db = openDatabase(databaseUrl, log)
  const app = createApp({
    config,
    db,
    fleet: createFleet(null),
    clock: systemClock,
    log,
    secretKey: newSecretKey(),
    failpoints: noFailpoints,
    deliverMail: async () => {},
    observer: createServerMetrics().observer,
    payments: null,
    fetchPublic: createPublicFetch(),
  })
  const server = createServer(app)
  await server.ready()
  await server.close()
  await db.destroy()
}
