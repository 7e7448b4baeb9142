// Secrets of units and stacks, sealed before they get here (lib/crypto.ts).

import type { Kysely } from 'kysely'
import type { Database } from './db.ts'

export type SecretsTable = {
  /** A unit for a credential its caller gave it; a stack for what the service generated. */
  owner_id: string
  name: string
  sealed: Buffer
}

/** Keeps what is there already: a generated secret is generated once. */
export async function insertSecrets(db: Kysely<Database>, secrets: SecretsTable[]): Promise<void> {
  if (secrets.length === 0) return
  await db
    .insertInto('secrets')
    .values(secrets)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function listSecrets(db: Kysely<Database>, ownerIds: string[]): Promise<SecretsTable[]> {
  return await db.selectFrom('secrets').selectAll().where('owner_id', 'in', ownerIds).execute()
}

export async function deleteSecrets(db: Kysely<Database>, ownerId: string): Promise<void> {
  await db.deleteFrom('secrets').where('owner_id', '=', ownerId).execute()
}

/** What was generated for any stack of the team. */
export async function deleteSecretsOfStacks(db: Kysely<Database>, teamId: string): Promise<void> {
  await db
    .deleteFrom('secrets')
    .where('owner_id', 'in', (query) => query.selectFrom('stacks').select('id').where('team_id', '=', teamId))
    .execute()
}
