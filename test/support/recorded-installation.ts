// An installation as an older release of Berth left it, recorded once by scripts/record-installation.ts: the statements
// with which that release made its schema, every row of its database, the small files of its data directory, and its
// disks as btrfs sends them. Tests put it before this release.

import { chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type pg from 'pg'
import type { Unit } from '../../src/contract/unit.ts'
import { createPaths } from '../../src/engine/oci/paths.ts'
import { receiveDisks } from '../../src/engine/oci/storage/disk-copies.ts'
import { closePool, openPool } from '../../src/engine/oci/storage/pool.ts'
import { type AccountName, getAccount } from '../../src/lib/system-users.ts'

export type RecordedDatabase = {
  /** What the older release ran to make its schema, in order. */
  schema: string[]
  /** Each row as Postgres spells it in JSON: as text, so that no number loses a digit on its way. */
  tables: Record<string, string[]>
  sequences: Record<string, string>
}

export type Recorded = {
  /** The commit of the older release. */
  commit: string
  database: RecordedDatabase
  /** Of the data directory, by path: what it holds in base64, and whose it is where that is not root. */
  files: Record<string, { mode: number; owner: AccountName | null; content: string }>
  /** Streams of `btrfs send` in base64, by path: `disks/<id>`, `volumes/<id>`. */
  disks: Record<string, string>
  /** What the older release answered, right before it was stopped. */
  units: Unit[]
  /** Keys that worked under it, and one that was revoked. */
  keys: { good: string[]; revoked: string }
}

const fixture = new URL('../fixtures/installation-cd6887e.json.gz', import.meta.url)

export async function readRecorded(): Promise<Recorded> {
  return JSON.parse(gunzipSync(await readFile(fixture)).toString()) as Recorded
}

/** All rows and sequences of a database, as of one moment. */
export async function dumpRows(client: pg.Client): Promise<Pick<RecordedDatabase, 'tables' | 'sequences'>> {
  await client.query('begin isolation level repeatable read read only')
  const names = await texts(
    client,
    `select tablename as text from pg_tables where schemaname = 'public' order by 1`,
  )
  const tables: RecordedDatabase['tables'] = {}
  for (const name of names)
    tables[name] = await texts(client, `select to_json(t)::text as text from "${name}" t order by 1`)
  const { rows } = await client.query<{ name: string; last: string }>(
    `select sequencename as name, last_value::text as last from pg_sequences
     where schemaname = 'public' and last_value is not null`,
  )
  await client.query('commit')
  return { tables, sequences: Object.fromEntries(rows.map(({ name, last }) => [name, last])) }
}

/**
 * Makes the older release's database in an empty one. `admin` is a connection of a superuser: rows are put in without
 * triggers, which have done their work when the rows were made.
 */
export async function loadDatabase(
  admin: pg.Client,
  { schema, tables, sequences }: RecordedDatabase,
): Promise<void> {
  await admin.query('set role berth')
  for (const statement of schema) await admin.query(statement)
  await admin.query('reset role')
  await admin.query(`set session_replication_role = 'replica'`)
  for (const [name, rows] of Object.entries(tables)) {
    const insert = `insert into "${name}" overriding system value
      select r.* from unnest($1::text[]) as row, json_populate_record(null::"${name}", row::json) as r`
    await admin.query(insert, [rows])
  }
  for (const [name, last] of Object.entries(sequences))
    await admin.query(`select setval('"${name}"', $1)`, [last])
  await admin.query(`set session_replication_role = 'origin'`)
}

/**
 * Lays the data directory out as the older release has it while Berth is stopped and the host was started anew, but for
 * its database. Disks are of images of this host: `imageOf` says which build of an image stands for the recorded one.
 */
export async function layOut(
  recorded: Recorded,
  dataDir: string,
  imageOf: (recordedDigest: string) => string,
): Promise<void> {
  // Disks first: a pool is not made where machines are that had one.
  const streams = await mkdtemp('/var/tmp/berth-streams-')
  for (const kind of ['disks', 'volumes']) await mkdir(join(streams, kind))
  for (const [path, content] of Object.entries(recorded.disks))
    await writeFile(join(streams, path), Buffer.from(content, 'base64'))
  const paths = createPaths({ dataDir, runDir: '' })
  await openPool(paths, 16)
  try {
    await receiveDisks(paths, streams, () => 1)
  } finally {
    await closePool(paths)
    await rm(streams, { recursive: true })
  }
  for (const [path, { mode, owner, content }] of Object.entries(recorded.files)) {
    const to = join(dataDir, path)
    await mkdir(dirname(to), { recursive: true, mode: 0o700 })
    const bytes = Buffer.from(content, 'base64')
    const isRecord = path.endsWith('/machine.json')
    await writeFile(to, isRecord ? withImages(bytes.toString(), imageOf) : bytes, { mode })
    if (owner !== null) {
      const { uid, gid } = await getAccount(owner)
      await chown(to, uid, gid)
    }
  }
}

/** Everything below a directory of the machines and the like that is small: what an upgrade meets. */
export async function readTree(directory: string, prefix: string): Promise<string[]> {
  const entries = await readdir(join(directory, prefix), { withFileTypes: true, recursive: true }).catch(
    () => [],
  )
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1))
}

/** Digests of images within a text. */
const withImages = (text: string, imageOf: (digest: string) => string) =>
  text.replace(/sha256:[0-9a-f]{64}/g, (digest) => imageOf(digest))

async function texts(client: pg.Client, query: string): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(query)
  return rows.map(({ text }) => text)
}
