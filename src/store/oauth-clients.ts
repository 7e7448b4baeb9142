// OAuth clients as they describe themselves: registered here, or in a document at the URL that is their id.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type OauthClient = {
  id: string
  kind: 'registered' | 'document'
  /** The name it claims; unverified. */
  name: string | null
  uri: string | null
  icon: string | null
  redirectUris: string[]
  freshUntil: Date | null
}

export async function findOauthClient(db: Kysely<Database>, id: string): Promise<OauthClient | null> {
  const row = await db
    .selectFrom('oauth_clients')
    .select([
      'id',
      'kind',
      'name',
      'uri',
      'icon',
      'redirect_uris as redirectUris',
      'fresh_until as freshUntil',
    ])
    .where('id', '=', id)
    .executeTakeFirst()
  return row ?? null
}

/** A document that was fetched again replaces the stored description. */
export async function saveOauthClient(
  db: Kysely<Database>,
  { at, ...client }: OauthClient & { at: Date },
): Promise<void> {
  const described = {
    name: client.name,
    uri: client.uri,
    icon: client.icon,
    redirect_uris: client.redirectUris,
    used_at: at,
    fresh_until: client.freshUntil,
  }
  await db
    .insertInto('oauth_clients')
    .values({ id: client.id, kind: client.kind, created_at: at, ...described })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(described))
    .execute()
}

export async function touchOauthClient(
  db: Kysely<Database>,
  { id, at }: { id: string; at: Date },
): Promise<void> {
  await db.updateTable('oauth_clients').set({ used_at: at }).where('id', '=', id).execute()
}

/** Deletes clients that were not used since then; their connected agents stay connected. */
export async function deleteOauthClients(
  db: Kysely<Database>,
  { unusedSince }: { unusedSince: Date },
): Promise<void> {
  await db.deleteFrom('oauth_clients').where('used_at', '<', unusedSince).execute()
}

/**
 * Deletes all but the newest `keep` clients without connected agents, so that anyone may register but no one can fill
 * the database.
 */
export async function deleteSurplusClients(db: Kysely<Database>, keep: number): Promise<void> {
  await sql`
    delete from oauth_clients where id in (
      select id from oauth_clients client
      where not exists (select 1 from oauth_families where client_id = client.id)
      order by used_at desc offset ${keep}
      for update skip locked
    )
  `.execute(db)
}
