// Secrets of units and stacks, encrypted by the caller (lib/crypto.ts).

import type { Kysely } from 'kysely'
import type { Database } from './schema.ts'
import type { SecretsTable } from './tables/secrets.ts'

export type { SecretsTable } from './tables/secrets.ts'

/** Keeps existing rows: a generated secret is generated once. */
export async function insertSecrets(db: Kysely<Database>, secrets: SecretsTable[]): Promise<void> {
  if (secrets.length === 0) return
  await db
    .insertInto('secrets')
    .values(secrets)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Replaces the value, the hosts and the requests of a secret of a unit. Hold the unit's lock. */
export async function replaceSecret(
  db: Kysely<Database>,
  { owner_id, name, ...values }: Omit<SecretsTable, 'placeholder'>,
): Promise<void> {
  await db
    .updateTable('secrets')
    .set(values)
    .where('owner_id', '=', owner_id)
    .where('name', '=', name)
    .execute()
}

export async function listSecrets(db: Kysely<Database>, ownerIds: string[]): Promise<SecretsTable[]> {
  return await db.selectFrom('secrets').selectAll().where('owner_id', 'in', ownerIds).execute()
}

export async function deleteSecrets(db: Kysely<Database>, ownerId: string): Promise<void> {
  await db.deleteFrom('secrets').where('owner_id', '=', ownerId).execute()
}

/** Deletes the generated secrets of all stacks of the team. */
export async function deleteSecretsOfStacks(db: Kysely<Database>, teamId: string): Promise<void> {
  await db
    .deleteFrom('secrets')
    .where('owner_id', 'in', (query) => query.selectFrom('stacks').select('id').where('team_id', '=', teamId))
    .execute()
}
