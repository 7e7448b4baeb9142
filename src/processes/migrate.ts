// Migrates the database to this release's schema, and makes sure that there is an account with a key.

import { type Kysely, sql } from 'kysely'
import { ensureFirstAccount } from '../domain/credentials/first-account.ts'
import { createOperatorKey } from '../domain/credentials/operator-key.ts'
import { createSignInLink } from '../domain/credentials/sign-in.ts'
import { systemClock } from '../lib/clock.ts'
import { type Database, openDatabase } from '../store/db.ts'
import { migrate } from '../store/migrate.ts'
import type { MigrateReady } from './channel.ts'
import { refuseDatabaseOfOthers } from './database-of-instance.ts'
import type { ProcessMain } from './run-process.ts'

const OLDEST_POSTGRES = 15

export const migrateProcess: ProcessMain = async ({
  config,
  instance,
  machines,
  databaseUrl,
  needsKey,
  log,
}) => {
  const db = openDatabase(databaseUrl, log)
  try {
    await refuseUnusable(db)
    await migrate(db, () =>
      log.warn('another session holds a lock on the database, so that it cannot be migrated: trying again'),
    )
    await refuseDatabaseOfOthers(db, {
      instanceId: instance.id,
      machines,
      dataDir: config.dataDir,
      databaseUrl: config.databaseUrl,
      accepted: config.acceptDatabase,
    })
    const needs = { db, clock: systemClock }
    const made = await ensureFirstAccount({ ...needs, freeCreditsCents: config.freeCreditsCents })
    const apiKey = made?.apiKey ?? (needsKey ? await createOperatorKey(needs) : null)
    const { token } = await createSignInLink(needs, null)
    const result: MigrateReady = { apiKey, signInToken: token }
    return { result, stop: async () => {} }
  } finally {
    await db.destroy()
  }
}

/** Explains the most common mistakes with DATABASE_URL: a wrong address, a wrong password, an old server. */
export async function refuseUnusable(db: Kysely<Database>): Promise<void> {
  const query = sql<{ version: string }>`select current_setting('server_version_num') as version`
  const { rows } = await query.execute(db).catch((cause: unknown) => {
    throw new Error(`The database cannot be used (${reasonOf(cause)}): check DATABASE_URL if it is yours.`, {
      cause,
    })
  })
  const major = Math.floor(Number(rows[0]?.version) / 10_000)
  if (major < OLDEST_POSTGRES) {
    throw new Error(`The database is Postgres ${major}, and Berth needs ${OLDEST_POSTGRES} or newer.`)
  }
}

/** The errors of Postgres and of the network never contain a password. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown error'
  const code = 'code' in cause ? String(cause.code) : ''
  return [code, cause.message].filter((part) => part !== '').join(', ')
}
