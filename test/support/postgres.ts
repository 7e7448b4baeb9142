// One real Postgres for a test run (the global setup of vitest.config.ts) and a database of its own for each
// file, copied from a template that has every migration: milliseconds instead of a start each.

import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import type { TestProject } from 'vitest/node'
import { silentLog } from '../../src/lib/log.ts'
import { openDatabase } from '../../src/store/db.ts'
import { migrate } from '../../src/store/migrate.ts'
import { type PostgresRole, postgresUrl, startPostgres } from '../../src/supervisor/postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgresSocketDir: string
  }
}

const TEMPLATE = 'berth_template'

const settings = {
  // Several test files at a time, some with several services.
  max_connections: '300',
  // Nothing here outlives the run, so nothing need reach the disk, nor be tidied up meanwhile.
  fsync: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
}

/** Called by vitest once a run; answers the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { socketDir, stop } = await startTestPostgres()
  project.provide('postgresSocketDir', socketDir)
  return stop
}

export async function startTestPostgres(): Promise<{ socketDir: string; stop: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-pg-'))
  // Without root's rights the server's user must reach its socket.
  await chmod(dir, 0o711)
  const socketDir = join(dir, 'socket')
  const postgres = await startPostgres({ dataDir: dir, socketDir, log: silentLog, settings })
  const stop = async () => {
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    await withDatabase(postgres.url('postgres'), async (client) => {
      await client.query(`CREATE DATABASE ${TEMPLATE} OWNER berth`)
    })
    const template = openDatabase(postgres.url('berth', TEMPLATE), silentLog)
    await migrate(template)
    await template.destroy()
  } catch (error) {
    await stop()
    throw error
  }
  return { socketDir, stop }
}

export type TestDatabase = {
  /** As the role that owns it. */
  url: string
  /** As the role of the gateway. */
  gatewayUrl: string
  /** As a superuser. */
  adminUrl: string
  drop(): Promise<void>
}

/** A database with every migration and no rows. Drop it when the file is done; its connections end then. */
export function createTestDatabase(socketDir = inject('postgresSocketDir')): Promise<TestDatabase> {
  return createDatabase(socketDir, TEMPLATE)
}

/** A database without any tables. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return createDatabase(inject('postgresSocketDir'), 'template1')
}

async function createDatabase(socketDir: string, template: string): Promise<TestDatabase> {
  const name = `berth_${randomBytes(8).toString('hex')}`
  const urlOf = (role: PostgresRole, database: string) => postgresUrl(socketDir, role, database)
  await withDatabase(urlOf('postgres', 'postgres'), (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE ${template} OWNER berth`),
  )
  return {
    url: urlOf('berth', name),
    gatewayUrl: urlOf('berth_gateway', name),
    adminUrl: urlOf('postgres', name),
    drop: () =>
      withDatabase(urlOf('postgres', 'postgres'), (client) =>
        client.query(`DROP DATABASE ${name} WITH (FORCE)`),
      ),
  }
}

async function withDatabase(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
