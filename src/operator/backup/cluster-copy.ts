// Copies the embedded Postgres while it runs, as Postgres documents it ("Making a Base Backup Using the Low Level
// API"): its files are copied between the start and the stop of a backup, although they change. A replication slot
// keeps the write-ahead log of that time, and the copy replays it up to the stop when it starts.

import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

/** The server creates these again; the write-ahead log is copied last. */
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

/** Calls `atStop` at the moment that the copy represents. `url`: connection as the superuser. */
export async function copyCluster(
  { url, from, to }: { url: string; from: string; to: string },
  atStop: () => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    // The slot is temporary: it ends with this connection.
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

/** A file that is deleted during the copy is not needed. */
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
