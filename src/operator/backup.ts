// `npm run backup -- DIRECTORY`: writes everything that a restore needs (restore.ts), while Berth and its units run
// (decisions/backup.md). The directory is written completely or not at all.

import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../config.ts'
import {
  hasPool,
  removeSnapshots,
  sendSnapshots,
  type Snapshot,
  takeSnapshots,
} from '../engine/oci/storage/disk-copies.ts'
import { createPaths, type Paths } from '../engine/oci/paths.ts'
import { loadRecords, type MachineRecord } from '../engine/oci/records/record.ts'
import { HOUR, systemClock } from '../lib/clock.ts'
import { lockFile } from '../lib/file-lock.ts'
import { runOrThrow } from '../lib/process.ts'
import { print } from '../lib/terminal.ts'
import { BACKUP_FILE, type Backup, keptFiles } from './backup/contents.ts'
import { copyCluster } from './backup/cluster-copy.ts'
import { findInstance, postgresSocketDir, runDirOf } from '../supervisor/instance.ts'
import { postgresUrl } from '../supervisor/postgres.ts'

/** Both for a backup and for a restore. */
export const SERVER_HAS_NO_DISKS =
  'A server without units has no disks: what it has is your database, with its dump (pg_dump), and its keys: ' +
  'roles/server/secret.key and fleet/ of its data directory, or, in a cluster, the Secret berth-server. Back up or put back these, ' +
  'the keys first. Disks of units are on their hosts.'

/** Returns the exit code. Throws a sentence for the operator. */
export async function runBackup(config: Config, args: string[]): Promise<number> {
  const [named, ...more] = args
  if (named === undefined || named.startsWith('-') || more.length > 0)
    throw new Error('Name a new directory: "npm run backup -- DIRECTORY". It must not exist yet.')
  const directory = resolve(named)
  if (config.role === 'server') throw new Error(SERVER_HAS_NO_DISKS)
  if (existsSync(directory)) throw new Error(`${directory} already exists: name a new directory.`)
  const instance = await findInstance(config.dataDir)
  const paths = createPaths({ dataDir: config.dataDir, runDir: '' })
  if (!instance || !hasPool(paths) || !existsSync(runDirOf(instance)))
    throw new Error(
      `Berth does not run on ${config.dataDir}: start it, since a backup is taken from a running Berth.`,
    )
  const lock = await lockFile(paths.backupLock)
  if ('owner' in lock)
    throw new Error(`Another backup is in progress (process ${lock.owner}): wait until it ends.`)
  const unfinished = `${directory}.unfinished`
  try {
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { recursive: true, mode: 0o700 })
    const database = config.databaseUrl === null ? postgresSocketDir(runDirOf(instance)) : null
    await copyAll(config, paths, { to: unfinished, database })
    const backup: Backup = {
      version: 1,
      at: systemClock.now().toISOString(),
      instanceId: instance.id,
      hasDatabase: database !== null,
    }
    await writeFile(join(unfinished, BACKUP_FILE), JSON.stringify(backup), { mode: 0o600, flush: true })
    await runOrThrow('sync', ['--file-system', unfinished], { timeoutMs: HOUR })
    await rename(unfinished, directory)
  } finally {
    await removeSnapshots(paths)
    await lock.release()
  }
  print(
    `The backup is in ${directory}, readable by root only, since it contains secrets. Restore it with "npm run restore -- ${directory}".`,
  )
  if (config.databaseUrl !== null)
    print(
      'It does not contain the database of DATABASE_URL: dump that database (pg_dump) right before each backup.',
    )
  return 0
}

/**
 * Copies the database first and then the disks of that moment: units created later are unknown to the copied
 * database, and are put aside.
 */
async function copyAll(
  { dataDir, imagesDir }: Config,
  paths: Paths,
  { to, database }: { to: string; database: string | null },
): Promise<void> {
  print('Copying the database')
  let taken: Snapshot[] = []
  let records: MachineRecord[] = []
  const atThatMoment = async () => {
    taken = await takeSnapshots(paths)
    records = (await loadRecords(paths.machines)).records.map(withoutRun)
  }
  if (database === null) await atThatMoment()
  else {
    const cluster = { from: join(dataDir, 'postgres/data'), to: join(to, 'postgres/data') }
    await copyCluster({ url: postgresUrl(database, 'postgres', 'postgres'), ...cluster }, atThatMoment)
  }
  print('Copying disks')
  await sendSnapshots(paths, taken, to)
  await mkdir(join(to, 'machines'), { mode: 0o700 })
  for (const record of records) {
    const file = join(to, 'machines', `${record.spec.id}.json`)
    await writeFile(file, JSON.stringify(record), { mode: 0o600 })
  }
  print('Copying images and keys')
  await copyImages(imagesDir, join(to, 'images'), records)
  await copyFile(join(dataDir, 'instance.json'), join(to, 'instance.json'))
  for (const name of keptFiles) {
    if (!existsSync(join(dataDir, name))) continue
    await mkdir(dirname(join(to, name)), { recursive: true, mode: 0o700 })
    await copyWhole(join(dataDir, name), join(to, name))
  }
}

/**
 * A run belongs to this host and this moment: after a restore its unit counts as lost by the host, and wakes from its
 * disk.
 */
function withoutRun(record: MachineRecord): MachineRecord {
  const isUnderWay = record.state === 'running' || record.state === 'starting'
  return { ...record, state: isUnderWay ? 'lost' : record.state, monitor: null }
}

/** Copies the images of the machines: a machine starts from exactly the image it was made of. */
async function copyImages(imagesDir: string, to: string, records: MachineRecord[]): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  const names = new Set(records.map(({ spec }) => spec.imageDigest.replace('sha256:', '')))
  const there = new Set(await readdir(imagesDir).catch(() => []))
  for (const name of names) if (there.has(name)) await copyWhole(join(imagesDir, name), join(to, name))
}

/** Keeps owners, times and attributes of every file. */
export async function copyWhole(from: string, to: string): Promise<void> {
  await runOrThrow('cp', ['--archive', '--no-target-directory', '--', from, to], { timeoutMs: 12 * HOUR })
}
