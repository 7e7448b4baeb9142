// Whether a database is the one that this instance's machines are of (decision 75). On another one, an empty one say, no
// machine would be anybody's; so an instance that has machines begins only on a database that it has begun on before.

import type { Kysely } from 'kysely'
import type { Database } from '../store/db.ts'
import { hasMet, meetInstance } from '../store/instances.ts'
import { findKnownIds } from '../store/units.ts'

type Newcomer = {
  instanceId: string
  /** Ids of machines and disks in the data directory. */
  machines: string[]
  dataDir: string
  /** Null: the one that Berth runs itself. */
  databaseUrl: string | null
  /** BERTH_ACCEPT_DATABASE. */
  accepted: string | null
}

/** Throws a sentence for a database that knows nothing of this instance though it has machines. */
export async function refuseStrangeDatabase(db: Kysely<Database>, newcomer: Newcomer): Promise<void> {
  const { instanceId, machines, accepted } = newcomer
  if (await hasMet(db, { instanceId })) return
  // One from before instances were written down knows the machines themselves.
  const isKnown = machines.length === 0 || (await findKnownIds(db, machines)).size > 0
  if (!isKnown && accepted !== instanceId) throw new Error(refusal(newcomer))
  await meetInstance(db, { instanceId })
}

function refusal({ instanceId, machines, dataDir, databaseUrl }: Newcomer): string {
  const [database, mend] =
    databaseUrl === null
      ? [`The database in ${dataDir}/postgres`, `put back the ${dataDir}/postgres that belongs to it`]
      : [`The database ${nameOf(databaseUrl)}`, 'set DATABASE_URL to the database that belongs to it']
  return (
    `${database} has never met this instance of Berth (${instanceId}), and in ${dataDir} are machines or disks of ` +
    `${machines.length} units, none of which it knows. So ${mend}. To begin on this database all the same, set ` +
    `BERTH_ACCEPT_DATABASE=${instanceId}: what it does not know is stopped, and kept aside for BERTH_KEEP_ASIDE.`
  )
}

/** Without its user and password, and without options, which can hold them too. */
function nameOf(databaseUrl: string): string {
  return databaseUrl.replace(/^(?:.*@|[a-z]+:\/\/)/s, '').replace(/\?.*$/s, '')
}
