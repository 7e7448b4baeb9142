// A server in a process of its own, over the engine in memory: see api-process.ts, which starts it.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { createServer } from '../../src/api/server.ts'
import { createApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { recover } from '../../src/domain/units/reconcile.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { firstHost } from './hosts.ts'
import { createFakeEngine } from './fake-engine/fake-engine.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { unobserved } from '../../src/lib/observer.ts'
import { SecretKey } from '../../src/lib/crypto.ts'
import { noFailpoints } from '../../src/lib/failpoints.ts'
import { createLog } from '../../src/lib/log.ts'
import { startJobs } from '../../src/jobs.ts'
import { openDatabase } from '../../src/store/db.ts'
import type { ApiProcessInput } from './api-process.ts'
import { createPublicFetch } from '../../src/lib/public-fetch.ts'

const [line] = (await once(createInterface({ input: process.stdin }), 'line')) as [string]
const { databaseUrl, settings, secretKey } = JSON.parse(line) as ApiProcessInput
const log = createLog('server', 'error')
const db = openDatabase(databaseUrl, log)
const app = createApp({
  config: loadConfig(settings),
  db,
  fleet: createFleet(await firstHost(db, createFakeEngine({ clock: systemClock }))),
  clock: systemClock,
  log,
  secretKey: new SecretKey(Buffer.from(secretKey, 'hex')),
  failpoints: noFailpoints,
  deliverMail: async () => {},
  observer: unobserved,
  payments: null,
  fetchPublic: createPublicFetch(),
})
await recover(app)
const loops = startJobs(app)
const server = createServer(app)
await server.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${(server.server.address() as AddressInfo).port}\n`)
await once(process, 'SIGTERM')
await server.close()
await loops.stop()
await db.destroy()
process.exit(0)
