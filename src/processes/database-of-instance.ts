// Checks that the database belongs to this instance's machines (decisions/backup.md). With another database, for example an
// empty one, every machine would be unknown; so an instance that has machines only starts on a database it has
// started on before.

import type { Kysely } from 'kysely'
import type { Database } from '../store/db.ts'
import { hasMet, meetInstance } from '../store/instances.ts'
import { findKnownIds } from '../store/units.ts'

type StartingInstance = {
  instanceId: string
  /** Ids of the machines and disks in the data directory. */
  machines: string[]
  dataDir: string
  /** Null: the embedded Postgres. */
  databaseUrl: string | null
  /** BERTH_ACCEPT_DATABASE. */
  accepted: string | null
}

/** Throws a sentence if the instance has machines and the database does not know it. */
export async function refuseDatabaseOfOthers(
  db: Kysely<Database>,
  instance: StartingInstance,
): Promise<void> {
  const { instanceId, machines, accepted } = instance
  if (await hasMet(db, { instanceId })) return
  // A database from before instances were recorded knows the machines themselves.
  const isKnown = machines.length === 0 || (await findKnownIds(db, machines)).size > 0
  if (!isKnown && accepted !== instanceId) throw new Error(refusal(instance))
  await meetInstance(db, { instanceId })
}

function refusal({ instanceId, machines, dataDir, databaseUrl }: StartingInstance): string {
  const [database, mend] =
    databaseUrl === null
      ? [`The database in ${dataDir}/postgres`, `put back the ${dataDir}/postgres that belongs to it`]
      : [`The database ${nameOf(databaseUrl)}`, 'set DATABASE_URL to the database that belongs to it']
  return (
    `${database} does not know this instance of Berth (${instanceId}), and ${dataDir} contains machines or disks of ` +
    `${machines.length} units, none of which it knows. So ${mend}. To start with this database anyway, set ` +
    `BERTH_ACCEPT_DATABASE=${instanceId}: the unknown machines are then stopped, and kept aside for BERTH_KEEP_ASIDE.`
  )
}

/** Without user, password and options, which can contain secrets. */
function nameOf(databaseUrl: string): string {
  return databaseUrl.replace(/^(?:.*@|[a-z]+:\/\/)/s, '').replace(/\?.*$/s, '')
}
