// Brings the database to this release's schema, and makes sure somebody can sign in and has a key.

import { ensureFirstAccount } from '../domain/credentials/first-account.ts'
import { createSignInLink } from '../domain/credentials/sign-in.ts'
import { systemClock } from '../lib/clock.ts'
import { openDatabase } from '../store/db.ts'
import { migrate } from '../store/migrate.ts'
import type { MigrateReady } from './channel.ts'
import type { Role } from './role.ts'

export const migrateRole: Role = async ({ databaseUrl, log }) => {
  const db = openDatabase(databaseUrl, log)
  try {
    await migrate(db)
    const needs = { db, clock: systemClock }
    const firstAccount = await ensureFirstAccount(needs)
    const link = await createSignInLink(needs, null)
    const result: MigrateReady = { apiKey: firstAccount?.apiKey ?? null, signInToken: link.token }
    return { result, stop: async () => {} }
  } finally {
    await db.destroy()
  }
}
