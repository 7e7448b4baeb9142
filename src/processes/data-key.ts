// The key that encrypts secrets at rest. It is in the database, sealed by the key in a file that is in no backup of
// the database: neither is useful without the other. The file's key can be rotated while the service runs, because
// only the data key is sealed again.
//
// A rotation writes `<file>.next`, then the database, then renames the file. If it dies in between, one of the two
// files opens the data key, and readers try both. Only a rotation writes these files, and rotations run one at a
// time.

import { chown, readFile, rename, rm, stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { loadSecretKey, newSecretKey, readKeyFile, SecretKey, writeKeyFile } from '../lib/crypto.ts'
import { readBytesIfThere } from '../lib/read-if-there.ts'
import {
  findDataKey,
  holdsSealed,
  insertDataKey,
  type SealedDataKey,
  updateDataKey,
  whileRotating,
} from '../store/data-keys.ts'
import type { Database } from '../store/db.ts'

type Where = { db: Kysely<Database>; keyFile: string }

const CONTEXT = ['data key']

/** Enough attempts for a rotation that is between the file and the database. */
const ATTEMPTS = 10
const PAUSE_MS = 50

/** Creates the key at the first start. Throws a sentence if no file opens the key in the database. */
export async function openDataKey({ db, keyFile }: Where): Promise<SecretKey> {
  if ((await findDataKey(db)) === null) await makeDataKey({ db, keyFile })
  for (let attempt = 1; ; attempt += 1) {
    const sealed = await findDataKey(db)
    if (!sealed) throw new Error('The key of the secrets in the database is gone: restore it from a backup.')
    for (const file of [keyFile, nextOf(keyFile)]) {
      const opened = openWith(await readKeyFile(file), sealed)
      if (opened) return opened
    }
    if (attempt === ATTEMPTS) throw await refusal(keyFile, sealed)
    await delay(PAUSE_MS)
  }
}

/** Where other machines find the key too: the one that opens the database is always there, as the key or as the next one. */
export type KeyKeeper = {
  /** Puts what is there into the files. */
  take(): Promise<void>
  keep(keys: { key: Buffer; next: Buffer | null }): Promise<void>
}

/** Replaces the file's key; the old key then opens nothing in the database any more. */
export async function rotateKeyFile(
  { db, keyFile }: Where,
  keeper?: KeyKeeper,
): Promise<{ from: string; to: string }> {
  return await whileRotating(db, async (connection) => {
    await keeper?.take()
    const next = nextOf(keyFile)
    const sealed = await findDataKey(connection)
    if (!sealed) throw new Error('Nothing is sealed yet: start Berth once before you rotate its key.')
    // Completes a rotation that was interrupted.
    if (openWith(await readKeyFile(next), sealed)) await rename(next, keyFile)
    const key = await readBytesIfThere(keyFile)
    const before = key && new SecretKey(key)
    const dataKey = openWith(before, sealed)
    if (!key || !before || !dataKey) throw await refusal(keyFile, sealed)

    const { uid, gid } = await stat(keyFile)
    await rm(next, { force: true })
    await writeKeyFile(next)
    await chown(next, uid, gid)
    const nextKey = await readFile(next)
    const after = new SecretKey(nextKey)
    await keeper?.keep({ key, next: nextKey })
    await updateDataKey(connection, sealWith(after, dataKey))
    await rename(next, keyFile)
    await keeper?.keep({ key: nextKey, next: null })
    return { from: before.id, to: after.id }
  })
}

export const nextOf = (keyFile: string) => `${keyFile}.next`

/** If several processes create it at once, one wins. */
async function makeDataKey({ db, keyFile }: Where): Promise<void> {
  const fileKey = await loadSecretKey(keyFile)
  const dataKey = (await holdsSealed(db)) ? fileKey : newSecretKey()
  await insertDataKey(db, sealWith(fileKey, dataKey))
}

function sealWith(fileKey: SecretKey, dataKey: SecretKey): SealedDataKey {
  return { sealed: fileKey.sealKey(dataKey, CONTEXT), sealedBy: fileKey.id }
}

function openWith(fileKey: SecretKey | null, { sealed, sealedBy }: SealedDataKey): SecretKey | null {
  return fileKey?.id === sealedBy ? fileKey.openKey(sealed, CONTEXT) : null
}

async function refusal(keyFile: string, { sealedBy }: SealedDataKey): Promise<Error> {
  const found = await readKeyFile(keyFile)
  const what = found ? `holds the key ${found.id}` : 'is missing'
  return new Error(
    `${keyFile} ${what}, and the secrets in the database open with the key ${sealedBy} alone: put that file back from the backup that the database is of.`,
  )
}
