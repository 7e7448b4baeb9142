// One of several server processes on one database and one engine. It reacts to exits on the host by itself, and does
// everything else when the simulator says so.

import type pg from 'pg'
import { type App, createApp } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config.ts'
import { recover } from '../../../src/domain/units/reconcile.ts'
import { watchExits } from '../../../src/domain/units/lifecycle/exits.ts'
import type { FakeEngine } from '../../support/fake-engine/fake-engine.ts'
import { SecretKey } from '../../../src/lib/crypto.ts'
import { noFailpoints } from '../../../src/lib/failpoints.ts'
import type { Log } from '../../../src/lib/log.ts'
import { unobserved } from '../../../src/lib/observer.ts'
import type { MonthClock } from './clock.ts'
import { createFleet, type NewHost } from '../../../src/engine/fleet.ts'
import { type Connections, createConnections } from './connections.ts'
import { createPublicFetch } from '../../../src/lib/public-fetch.ts'

export type Server = {
  app: App
  connections: Connections
  life: AbortController
}

const secretKey = new SecretKey(Buffer.alloc(32, 7))

export function createServer(
  pool: pg.Pool,
  host: NewHost,
  engine: FakeEngine,
  clock: MonthClock,
  log: Log,
): Server {
  const life = new AbortController()
  const connections = createConnections(pool, life)
  const app = createApp({
    config: loadConfig({ BERTH_FROZEN_FOR: '2h' }),
    db: connections.db,
    fleet: createFleet({ ...host, engine: cutOff(engine, life.signal) }),
    clock: clock.for(life.signal),
    log,
    secretKey,
    failpoints: noFailpoints,
    deliverMail: async () => {},
    observer: unobserved,
    payments: null,
    fetchPublic: createPublicFetch(),
  })
  return { app, connections, life }
}

export async function begin({ app, life }: Server): Promise<void> {
  await recover(app)
  void watchExits(app, life.signal)
}

/** A request to the engine is carried out, but a process that has died never gets the answer. */
function cutOff(engine: FakeEngine, life: AbortSignal): FakeEngine {
  return new Proxy(engine, {
    get: (target, name: keyof FakeEngine) => {
      const method = target[name] as (...args: unknown[]) => unknown
      if (name === 'watchExits' || typeof method !== 'function') return method
      return (...args: unknown[]) => {
        const result = life.aborted ? never() : method(...args)
        if (!(result instanceof Promise)) return result
        return result.then(
          async (value: unknown) => (life.aborted ? await never() : value),
          async (error: unknown) => (life.aborted ? await never() : Promise.reject(error)),
        )
      }
    },
  })
}

async function never(): Promise<never> {
  return await new Promise<never>(() => {})
}
