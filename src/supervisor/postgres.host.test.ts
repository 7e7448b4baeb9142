import { mkdtemp, rm, stat } from 'node:fs/promises'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../lib/log.ts'
import { startPostgres, type Postgres } from './postgres.ts'

// A directory that only root can enter, like a BERTH_DATA_DIR below /root.
let dir = ''
let socketDir = ''
const start = () => startPostgres({ dataDir: join(dir, 'data'), socketDir, log: silentLog })

beforeAll(async () => {
  dir = await mkdtemp('/var/tmp/berth-test-')
  socketDir = await mkdtemp('/run/berth-test-')
})

afterAll(async () => {
  await rm(dir, { recursive: true, force: true })
  await rm(socketDir, { recursive: true, force: true })
})

describe('the embedded Postgres', () => {
  it('starts in a directory that only root can enter and keeps its rows across a restart', async () => {
    await using first = await started()
    await query(first.postgres, 'CREATE TABLE kept (n int)')
    await query(first.postgres, 'INSERT INTO kept VALUES (7)')
    await first.postgres.stop()
    await using second = await started()
    expect(await query(second.postgres, 'SELECT n FROM kept')).toEqual([{ n: 7 }])
  })

  it('runs as its own user and listens on no network address', async () => {
    await using running = await started()
    const rows = await query(
      running.postgres,
      "SELECT setting FROM pg_settings WHERE name = 'listen_addresses'",
    )
    expect(rows).toEqual([{ setting: '' }])
    const pgdata = await stat(join(dir, 'data/postgres/data'))
    expect(pgdata.uid).not.toBe(0)
    expect(pgdata.mode & 0o777).toBe(0o700)
  })

  it('starts again after a SIGKILL, and its last log line is reported', async () => {
    const logged = vi.spyOn(silentLog, 'error')
    await using killed = await started()
    process.kill(await postmasterPid(killed.postgres), 'SIGKILL')
    await killed.postgres.exited
    const lastWords = { lastLine: expect.any(String) as string }
    expect(logged.mock.calls).toEqual([[lastWords, 'postgres ended unexpectedly']])
    logged.mockRestore()
    await using next = await started()
    expect(await query(next.postgres, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('stops a server left running by an earlier supervisor', async () => {
    await using orphan = await started()
    await using next = await started()
    await orphan.postgres.exited
    expect(await query(next.postgres, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  it('lets each system user log in only with its own role', async () => {
    await using running = await started()
    expect(loginAs('berth', running.postgres.url('berth'))).toBe('berth')
    expect(loginAs('berth-gateway', running.postgres.url('berth_gateway'))).toBe('berth_gateway')
    expect(loginAs('berth-gateway', running.postgres.url('berth'))).toMatch(/Peer authentication failed/)
    expect(loginAs('berth', running.postgres.url('postgres'))).toMatch(/Peer authentication failed/)
    expect(loginAs('nobody', running.postgres.url('berth'))).toMatch(/Peer authentication failed/)
  })

  it('throws if its socket path exceeds the kernel’s limit', async () => {
    const long = `/run/${'x'.repeat(100)}`
    await expect(startPostgres({ dataDir: dir, socketDir: long, log: silentLog })).rejects.toThrow(/too long/)
  })
})

async function started(): Promise<{ postgres: Postgres; [Symbol.asyncDispose](): Promise<void> }> {
  const postgres = await start()
  return { postgres, [Symbol.asyncDispose]: () => postgres.stop() }
}

async function query(postgres: Postgres, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: postgres.url('berth') })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

async function postmasterPid(postgres: Postgres): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.url('postgres') })
  await client.connect()
  const { rows } = await client.query<{ pid: string }>("SELECT pg_read_file('postmaster.pid') AS pid")
  await client.end()
  return Number.parseInt(rows[0]?.pid ?? '', 10)
}

/** Returns the role that a login of this system user gets, or the error. The user may be unable to read the project, so the library is loaded before. */
function loginAs(user: string, url: string): string {
  const script = `
    const pg = (await import(${JSON.stringify(import.meta.resolve('pg'))})).default
    process.setgroups([])
    process.setuid(${JSON.stringify(user)})
    const client = new pg.Client({ connectionString: ${JSON.stringify(url)} })
    await client.connect().then(
      async () => { console.log((await client.query('SELECT current_user AS role')).rows[0].role); await client.end() },
      (error) => console.log(error.message))`
  const result = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' })
  return (result.stdout + result.stderr).trim()
}
