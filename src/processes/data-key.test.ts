// Reliability S28: the key that encrypts secrets at rest, and the key file that decrypts it.

import { copyFile, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts'
import { loadSecretKey } from '../lib/crypto.ts'
import { silentLog } from '../lib/log.ts'
import { type Database, openDatabase } from '../store/db.ts'
import { insertSecrets } from '../store/secrets.ts'
import { openDataKey, rotateKeyFile } from './data-key.ts'

let database: TestDatabase
let db: Kysely<Database>
let dir: string
let keyFile: string
let sealed: Buffer

const context = ['secret', 'team', 'unit', 'name']
const open = async () => await openDataKey({ db, keyFile })
const read = async () => (await open()).open(sealed, context).toString()
const rotate = async () => await rotateKeyFile({ db, keyFile })

beforeEach(async () => {
  database = await createTestDatabase()
  db = openDatabase(database.url, silentLog)
  dir = await mkdtemp(join(tmpdir(), 'berth-key-'))
  keyFile = join(dir, 'secret.key')
  sealed = (await open()).seal(Buffer.from('hidden'), context)
})
afterEach(async () => {
  await db.destroy()
  await database.drop()
  await rm(dir, { recursive: true })
})

describe('the data key', () => {
  it('is created once by concurrent processes', async () => {
    await db.deleteFrom('data_keys').execute()
    const keys = await Promise.all(Array.from({ length: 8 }, open))
    const value = keys[0]?.seal(Buffer.from('x'), context) ?? Buffer.alloc(0)
    for (const key of keys) expect(key.open(value, context).toString()).toBe('x')
  })

  it('can read secrets that an older release sealed with the key file itself', async () => {
    await db.deleteFrom('data_keys').execute()
    sealed = (await loadSecretKey(keyFile)).seal(Buffer.from('hidden'), context)
    await insertSecrets(db, [
      { owner_id: 'unit', name: 'name', sealed, hosts: null, methods: null, paths: null, placeholder: null },
    ])
    expect(await read()).toBe('hidden')
    await rotate()
    expect(await read()).toBe('hidden')
  })

  it('cannot be opened without its key file, and no new file is created', async () => {
    await rm(keyFile)
    await expect(open()).rejects.toThrow(/secret\.key is missing.*put that file back/)
    await expect(rotate()).rejects.toThrow('is missing')
    expect(await readdir(dir)).toEqual([])
  })

  it('cannot be opened with the key file of another backup', async () => {
    await copyFile(keyFile, join(dir, 'backup'))
    await rotate()
    await rename(join(dir, 'backup'), keyFile)
    await expect(open()).rejects.toThrow(/holds the key [0-9a-f]{12}, and .* open with the key [0-9a-f]{12}/)
  })
})

describe('a key rotation', () => {
  it('removes the old key and leaves a file that only its owner can read', async () => {
    const before = await loadSecretKey(keyFile)
    const { from, to } = await rotate()
    expect(from).toBe(before.id)
    expect((await loadSecretKey(keyFile)).id).toBe(to)
    expect(await readdir(dir)).toEqual(['secret.key'])
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600)
    expect(await read()).toBe('hidden')
  })

  it('does not fail concurrent reads, and concurrent rotations leave one valid key file', async () => {
    let over = false
    let reads = 0
    const reading = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (!over || reads < 1000) {
          expect(await read()).toBe('hidden')
          reads += 1
        }
      }),
    )
    for (let round = 0; round < 5; round += 1) await Promise.all([rotate(), rotate(), rotate()])
    over = true
    await reading
    expect(reads).toBeGreaterThanOrEqual(1000)
    expect(await readdir(dir)).toEqual(['secret.key'])
  })

  it('that was interrupted before or after the database update is completed later', async () => {
    const next = `${keyFile}.next`
    await copyFile(keyFile, join(dir, 'before'))
    await loadSecretKey(next)
    expect(await read()).toBe('hidden')
    await rotate()
    await rename(keyFile, next)
    await rename(join(dir, 'before'), keyFile)
    expect(await read()).toBe('hidden')
    await rotate()
    expect(await read()).toBe('hidden')
    expect(await readdir(dir)).toEqual(['secret.key'])
  })
})
