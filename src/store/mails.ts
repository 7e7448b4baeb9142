// Mails to deliver, encrypted by the caller. A process that takes a mail has it until `due_at`; if it is slower, it
// finds that `attempts` has changed, and changes nothing.

import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.ts'

export type MailRecord = { id: string; sealed: Buffer; attempts: number; createdAt: Date }

export async function insertMail(
  db: Kysely<Database>,
  { id, sealed, createdAt }: { id: string; sealed: Buffer; createdAt: Date },
): Promise<void> {
  await db
    .insertInto('mails')
    .values({ id, sealed, attempts: 0, due_at: createdAt, created_at: createdAt })
    .execute()
}

/** Concurrent runs of the job take different mails. */
export async function takeDueMails(
  db: Kysely<Database>,
  { now, until, limit }: { now: Date; until: Date; limit: number },
): Promise<MailRecord[]> {
  const { rows } = await sql<MailRecord>`
    update mails set attempts = attempts + 1, due_at = ${until}
    where id in (
      select id from mails where due_at <= ${now} order by due_at limit ${limit} for update skip locked
    )
    returning id, sealed, attempts, created_at as "createdAt"
  `.execute(db)
  return rows
}

type Taken = Pick<MailRecord, 'id' | 'attempts'>

export async function deleteMail(db: Kysely<Database>, { id, attempts }: Taken): Promise<void> {
  await db.deleteFrom('mails').where('id', '=', id).where('attempts', '=', attempts).execute()
}

export async function putOffMail(
  db: Kysely<Database>,
  { id, attempts, until }: Taken & { until: Date },
): Promise<void> {
  await db
    .updateTable('mails')
    .set({ due_at: until })
    .where('id', '=', id)
    .where('attempts', '=', attempts)
    .execute()
}
