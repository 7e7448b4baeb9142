// Hosts of other machines as they join (decisions/joining.md).

import type { Kysely } from 'kysely'
import { findHostOfGateway } from './host-gateways.ts'
import type { Database } from './schema.ts'

type Joined = { newId: string; name: string; instance: string; address: string; at: Date }

export type JoinOutcome =
  | { kind: 'joined' }
  /** Another machine has this name. */
  | { kind: 'name_taken' }
  /** The machine has joined by another name. */
  | { kind: 'has_name'; name: string }
  /** Its data directory has had a server of its own on this database. */
  | { kind: 'had_server'; name: string }

/**
 * A machine that has joined before stays the host that it was; one that was given up or removed takes units again. The
 * name of a removed host is free.
 */
export async function joinHost(db: Kysely<Database>, joined: Joined): Promise<JoinOutcome> {
  return await db.transaction().execute(async (inside) => {
    const { newId, name, instance, address, at } = joined
    const found = await inside
      .selectFrom('hosts')
      .select(['id', 'name', 'instance', 'address', 'state'])
      .where((where) => where.or([where('name', '=', name), where('instance', '=', instance)]))
      .forUpdate()
      .execute()
    const own = found.find((host) => host.instance === instance)
    const named = found.find((host) => host.name === name && host !== own)
    if (own?.address === null) return { kind: 'had_server', name: own.name }
    if (own && own.name !== name && own.state !== 'removed') return { kind: 'has_name', name: own.name }
    if (named && named.state !== 'removed') return { kind: 'name_taken' }
    if (named) {
      const former = `${name.slice(0, 23)}-${named.id.slice(-8)}`
      await inside.updateTable('hosts').set({ name: former }).where('id', '=', named.id).execute()
    }
    const isBack = own?.state === 'lost' || own?.state === 'removed'
    if (own)
      await inside
        .updateTable('hosts')
        .set({
          name,
          address,
          ...(isBack ? { state: 'joining', state_since: at, destroys_units: false } : {}),
          // What was signed for an earlier host of this name, or for this one before it was removed, is refused.
          ...(isBack || own.name !== name ? { member_since: at } : {}),
        })
        .where('id', '=', own.id)
        .execute()
    else
      await inside
        .insertInto('hosts')
        .values({ id: newId, name, instance, address, region: null, state: 'joining', state_since: at })
        .execute()
    if (!own || isBack)
      await inside
        .insertInto('host_events')
        .values({ host_id: own?.id ?? newId, at, event: 'joining' })
        .execute()
    return { kind: 'joined' }
  })
}

/** Whether the machine is still the host of this name, and the certificate was signed for it. */
export async function isMember(
  db: Kysely<Database>,
  { name, instance, issuedAt }: { name: string; instance: string; issuedAt: Date },
): Promise<boolean> {
  const id = await findHostOfGateway(db, { name, issuedAt })
  if (id === null) return false
  const host = await db.selectFrom('hosts').select('instance').where('id', '=', id).executeTakeFirst()
  return host?.instance === instance
}
