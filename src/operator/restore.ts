// `npm run restore -- DIRECTORY`: writes a data directory from a backup (backup.ts). It starts nothing, and refuses
// to overwrite a data directory. instance.json is written last, so a data directory whose restore was interrupted is
// refused at the start.

import { existsSync } from 'node:fs'
import { chmod, chown, copyFile, mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Config } from '../config.ts'
import { receiveDisks } from '../engine/oci/storage/disk-copies.ts'
import { createPaths } from '../engine/oci/paths.ts'
import { closePool, openPool } from '../engine/oci/storage/pool.ts'
import { type MachineRecord, saveRecord } from '../engine/oci/records/record.ts'
import { getAccount } from '../lib/system-users.ts'
import { HOUR } from '../lib/clock.ts'
import { runOrThrow } from '../lib/process.ts'
import { readIfThere } from '../lib/read-if-there.ts'
import { print } from '../lib/terminal.ts'
import { BACKUP_FILE, type Backup, backupSchema, keptFiles } from './backup/contents.ts'
import { copyWhole, SERVER_HAS_NO_DISKS } from './backup.ts'

/** Returns the exit code. Throws a sentence for the operator. */
export async function runRestore(config: Config, args: string[]): Promise<number> {
  const [named, ...more] = args
  if (named === undefined || named.startsWith('-') || more.length > 0)
    throw new Error('Name the directory of a backup: "npm run restore -- DIRECTORY".')
  if (config.role === 'server') throw new Error(SERVER_HAS_NO_DISKS)
  const from = resolve(named)
  const backup = await readBackup(from)
  const { dataDir } = config
  const left = await readdir(dataDir).catch(() => [])
  if (left.some((name) => name !== 'logs' && name !== 'images'))
    throw new Error(`${dataDir} is not empty: move it away, or set BERTH_DATA_DIR to another directory.`)

  await mkdir(dataDir, { recursive: true })
  await chmod(dataDir, 0o711)
  if (backup.hasDatabase) await restoreDatabase(from, dataDir)
  await restoreImages(join(from, 'images'), config.imagesDir)
  await restoreMachines(config, from)
  await restoreFiles(from, dataDir)
  await copyFile(join(from, 'instance.json'), join(dataDir, 'instance.json'))
  print(
    `${dataDir} is restored as of ${backup.at}. Start Berth: its units are asleep, and wake at their next use.`,
  )
  if (!backup.hasDatabase)
    print('Before that, restore the dump of your database, and set DATABASE_URL to it.')
  return 0
}

async function readBackup(from: string): Promise<Backup> {
  const text = await readIfThere(join(from, BACKUP_FILE))
  const parsed = text === null ? null : backupSchema.safeParse(JSON.parse(text))
  if (parsed?.success) return parsed.data
  throw new Error(`${from} is not a backup of this release of Berth: it has no readable ${BACKUP_FILE}.`)
}

async function restoreDatabase(from: string, dataDir: string): Promise<void> {
  print('Restoring the database')
  const root = join(dataDir, 'postgres')
  await mkdir(root)
  await copyWhole(join(from, 'postgres/data'), join(root, 'data'))
  const { uid, gid } = await getAccount('berth-postgres')
  await runOrThrow('chown', ['--recursive', '--no-dereference', `${uid}:${gid}`, join(root, 'data')], {
    timeoutMs: HOUR,
  })
}

/** Images that already exist stay: their name is the digest of their content. */
async function restoreImages(from: string, imagesDir: string): Promise<void> {
  await mkdir(imagesDir, { recursive: true, mode: 0o700 })
  for (const name of await readdir(from)) {
    const image = join(imagesDir, name)
    if (existsSync(image)) continue
    const unfinished = join(imagesDir, `making-${name}`)
    await copyWhole(join(from, name), unfinished)
    await rename(unfinished, image)
  }
}

async function restoreMachines({ dataDir, poolGb }: Config, from: string): Promise<void> {
  print('Restoring disks')
  const records = new Map<string, MachineRecord>()
  for (const name of await readdir(join(from, 'machines'))) {
    const record = JSON.parse(await readFile(join(from, 'machines', name), 'utf8')) as MachineRecord
    records.set(record.spec.id, record)
  }
  const paths = createPaths({ dataDir, runDir: '' })
  await openPool(paths, poolGb)
  try {
    await receiveDisks(paths, from, (kind, id) => {
      const spec = records.get(id)?.spec
      return (kind === 'disks' ? spec?.size.diskGb : spec?.volume?.gb) ?? null
    })
  } finally {
    await closePool(paths)
  }
  for (const record of records.values()) await saveRecord(paths, record)
}

async function restoreFiles(from: string, dataDir: string): Promise<void> {
  for (const name of keptFiles) {
    if (!existsSync(join(from, name))) continue
    await mkdir(dirname(join(dataDir, name)), { recursive: true })
    await copyWhole(join(from, name), join(dataDir, name))
  }
  const key = join(dataDir, 'roles/server/secret.key')
  const { uid, gid } = await getAccount('berth')
  // User ids differ between hosts.
  if (existsSync(key)) await chown(key, uid, gid)
}
