// A service of its own for a program beside the tests: a Postgres in a directory that goes with it, one team with a key,
// and a server in a process of its own, with the engine in memory.

import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { policySchema } from '../../src/contract/policy.ts'
import { createAccount } from '../../src/domain/accounts/create.ts'
import { createKey } from '../../src/domain/credentials/keys.ts'
import { silentLog } from '../../src/lib/log.ts'
import { type Database, openDatabase } from '../../src/store/db.ts'
import { migrate } from '../../src/store/migrate.ts'
import { startPostgres } from '../../src/supervisor/postgres.ts'
import { type ApiProcess, startApiProcess } from './api-process.ts'

export type ScratchService = {
  /** Its directory, which `stop` removes. */
  dir: string
  db: Kysely<Database>
  teamId: string
  key: { id: string; secret: string }
  server: ApiProcess
  stop: () => Promise<void>
}

/** `name`: of the key, and what the directory is called by. The rate of requests is far above what anybody sends. */
export async function startScratchService(name: string): Promise<ScratchService> {
  const dir = await mkdtemp(join(tmpdir(), `berth-${name}-`))
  await chmod(dir, 0o711)
  const postgres = await startPostgres({ dataDir: dir, socketDir: join(dir, 'socket'), log: silentLog })
  const databaseUrl = postgres.url('berth')
  const db = openDatabase(databaseUrl, silentLog)
  await migrate(db)
  const createdAt = new Date()
  const { teamId, userId } = await createAccount(db, {
    email: `${name}@example.test`,
    name,
    admin: false,
    plan: 'team',
    paysAsItGoes: true,
    freeCreditsCents: 0,
    createdAt,
  })
  const policy = policySchema.parse({})
  const key = await createKey(db, { teamId, name, policy, createdBy: userId, createdAt })
  const settings = { BERTH_RATE_REQUESTS: '1000000' }
  const server = await startApiProcess({ databaseUrl, settings, secretKey: randomBytes(32).toString('hex') })
  const stop = async () => {
    await server.stop()
    await db.destroy()
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }
  return { dir, db, teamId, key, server, stop }
}
