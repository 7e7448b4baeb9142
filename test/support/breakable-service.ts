// A service whose way to Postgres a test breaks, and whose loops go round when the test says so.

import type { Kysely } from 'kysely'
import { chargeMeters } from '../../src/domain/billing/charge.ts'
import { resumeForks } from '../../src/domain/forks/run.ts'
import { destroyErroredUnits } from '../../src/domain/units/destroy.ts'
import { cleanUpFailedCreates } from '../../src/domain/units/create-group.ts'
import { reconcileMachines, resumeOperations } from '../../src/domain/units/reconcile.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type Database, openDatabase } from '../../src/store/db.ts'
import { findUnsettled } from './invariants.ts'
import { openPostgresProxy, type PostgresProxy } from './postgres-proxy.ts'
import { type Service, startService } from './service.ts'

export type BreakableService = {
  service: Service
  proxy: PostgresProxy
  /** Past the proxy. */
  db: Kysely<Database>
  databaseUrl: string
  /** What the loops that bring things about do, in ten seconds or so. */
  goRound(): Promise<void>
  /** Goes round until there is nothing left to do. Answers what is not as it should be even then. */
  settle(): Promise<string[]>
  close(): Promise<void>
}

const rounds = [
  resumeOperations,
  resumeForks,
  cleanUpFailedCreates,
  destroyErroredUnits,
  reconcileMachines,
  chargeMeters,
]
const MAX_ROUNDS = 6

export async function startBreakableService({ loops = false } = {}): Promise<BreakableService> {
  const way = Promise.withResolvers<{ proxy: PostgresProxy; databaseUrl: string }>()
  const reach = async (databaseUrl: string) => {
    const proxy = await openPostgresProxy(databaseUrl)
    way.resolve({ proxy, databaseUrl })
    return proxy.url
  }
  const service = await startService({ loops, frozenForMs: SECOND, reach })
  const { proxy, databaseUrl } = await way.promise
  const db = openDatabase(databaseUrl, silentLog)

  async function goRound(): Promise<void> {
    service.clock.advance(11 * SECOND)
    for (const round of rounds) await round(service.app)
  }

  return {
    service,
    proxy,
    db,
    databaseUrl,
    goRound,
    settle: async () => {
      for (let round = 1; ; round++) {
        await goRound()
        const unsettled = await findUnsettled({ db }, service.engine)
        if (unsettled.length === 0 || round === MAX_ROUNDS) return unsettled
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    close: async () => {
      await db.destroy()
      await service.close()
      await proxy.close()
    },
  }
}
