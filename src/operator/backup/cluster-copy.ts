// A copy of the embedded Postgres while it works, the way Postgres itself has it (its manual: "Making a Base Backup Using
// the Low Level API"): between the start and the stop of a backup its files are copied, however they change meanwhile; with
// the log of what was written since, which a slot keeps, the copy comes to the moment of the stop as it is started.

import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

/** The server makes these anew; and the log is copied last. */
const LEFT_OUT = new Set([
  'postmaster.pid',
  'postmaster.opts',
  'pg_wal',
  'pg_replslot',
  'pg_stat_tmp',
  'pgsql_tmp',
])
const EMPTY = ['pg_wal', 'pg_replslot', 'pg_stat_tmp']
const SLOT = 'berth_backup'

/** `atStop` is called at the moment that the copy is of. `url`: as the superuser. */
export async function copyCluster(
  { url, from, to }: { url: string; from: string; to: string },
  atStop: () => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    // Temporary: it goes with this connection, however that ends.
    await client.query('select pg_create_physical_replication_slot($1, true, true)', [SLOT])
    await client.query("select pg_backup_start('berth', true)")
    await copyTree(from, to)
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
    await atStop()
    for (const name of EMPTY) await mkdir(join(to, name), { mode: 0o700, recursive: true })
    await copyTree(join(from, 'pg_wal'), join(to, 'pg_wal'))
    await writeFile(join(to, 'backup_label'), rows[0]?.labelfile ?? '', { mode: 0o600 })
  } finally {
    await client.end()
  }
}

/** What goes away meanwhile was not to be copied. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700, recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await copyTree(source, target).catch(unlessGone)
    else if (entry.isFile()) await copyFile(source, target).catch(unlessGone)
  }
}

function unlessGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
