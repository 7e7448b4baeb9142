// A Postgres of the operator's, beside the Berths of a test: one login for all processes, as such a database has it.

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { silentLog } from '../../src/lib/log.ts'
import { type Postgres, startPostgres } from '../../src/supervisor/postgres.ts'

export type OwnPostgres = {
  url: () => string
  ask: <Row extends pg.QueryResultRow>(text: string) => Promise<Row[]>
  start: () => Promise<void>
  stop: () => Promise<void>
}

/** For the tests of the file that it is called in: it runs from their first hook below the call, and is removed after them. */
export function useOwnPostgres(): OwnPostgres {
  let opened: Awaited<ReturnType<typeof openOwnPostgres>>
  beforeAll(async () => {
    opened = await openOwnPostgres()
  })
  afterAll(async () => await opened?.remove())
  return {
    url: () => opened.url(),
    ask: async (text) => await opened.ask(text),
    start: async () => await opened.start(),
    stop: async () => await opened.stop(),
  }
}

/** One that runs, for a caller who removes it. */
export async function openOwnPostgres(): Promise<OwnPostgres & { remove: () => Promise<void> }> {
  const directory = await mkdtemp('/run/berth-test-')
  await chmod(directory, 0o711)
  let postgres: Postgres
  const start = async () => {
    const dataDir = join(directory, 'data')
    postgres = await startPostgres({ dataDir, socketDir: join(directory, 'socket'), log: silentLog })
    // Berth's own Postgres tells clients apart by their system users.
    await writeFile(join(dataDir, 'postgres/hba.conf'), 'local all all trust\n')
    await query(postgres.url('postgres', 'postgres'), 'select pg_reload_conf()')
  }
  await start()
  return {
    url: () => postgres.url('berth'),
    ask: async (text) => await query(postgres.url('berth'), text),
    start,
    stop: async () => await postgres.stop(),
    remove: async () => {
      await postgres.stop()
      await rm(directory, { recursive: true })
    },
  }
}

async function query<Row extends pg.QueryResultRow>(connectionString: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}
