// The embedded Postgres: real Postgres from npm, on a unix socket only, run as a user that owns nothing else. It uses
// peer authentication: the system user decides the database role, so there is no password to keep (design 2). Callers
// hold the lock of the data directory, so no other process starts one in it.

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { SECOND } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { prepareCluster } from './postgres/cluster.ts'
import { endLeftovers } from './postgres/leftovers.ts'
import { prepareRoles } from './postgres/roles.ts'

export type PostgresRole = 'postgres' | 'berth' | 'berth_gateway'

export type Postgres = {
  /**
   * Returns a connection string of the database `berth`, or another one; the caller's system user must map to the
   * role.
   */
  url(role: PostgresRole, database?: string): string
  /** Fast shutdown: ends all sessions and writes everything to disk. */
  stop(): Promise<void>
  /** Resolves when the server's process has ended, for whatever reason. */
  exited: Promise<void>
}

/** Recovery after a crash takes time; this is how long to wait for a server that is alive. */
const START_TIMEOUT_MS = 300 * SECOND
const STOP_TIMEOUT_MS = 20 * SECOND
const POLL_EVERY_MS = 25

/** Little memory: the control plane's tables are small, and the memory is for the units. */
const settings = {
  listen_addresses: '',
  max_connections: '60',
  shared_buffers: '32MB',
  huge_pages: 'off',
  io_method: 'sync',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  min_wal_size: '32MB',
  max_wal_size: '256MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // A failing statement can contain what a caller sent, which must not be logged.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
} as const satisfies Record<string, string>

/**
 * Starts Postgres on the socket `<socketDir>/.s.PGSQL.5432` with its files below `<dataDir>/postgres` (created the
 * first time). Resolves once the database `berth` and its roles can be used. As root it runs as berth-postgres,
 * without root as the caller. `settings` override those above. Throws a sentence that says what is wrong.
 */
export async function startPostgres(options: {
  dataDir: string
  socketDir: string
  log: Log
  settings?: Record<string, string>
}): Promise<Postgres> {
  const { socketDir, log } = options
  refuseLongPath(`${socketDir}/.s.PGSQL.5432`)
  const cluster = await prepareCluster(join(options.dataDir, 'postgres'), socketDir)
  await endLeftovers(cluster.dataDir, socketDir)

  const server = cluster.spawnServer({ ...settings, ...options.settings })
  const exited = once(server, 'exit').then(() => {})
  const lastLine = forwardLines(server, log)
  const url = (role: PostgresRole, database?: string) => postgresUrl(socketDir, role, database)
  try {
    await waitUntilReady(server, () => prepareRoles((database) => url('postgres', database)))
  } catch (cause) {
    await stopServer(server, exited)
    throw new Error(`Postgres did not start: ${lastLine() ?? String(cause)}`, { cause })
  }
  let isAsked = false
  void exited.then(() => {
    if (!isAsked) log.error({ lastLine: lastLine() }, 'postgres ended unexpectedly')
  })
  const stop = async () => {
    isAsked = true
    await stopServer(server, exited)
  }
  return { url, stop, exited }
}

export function postgresUrl(socketDir: string, role: PostgresRole, database = 'berth'): string {
  return `postgresql://${role}@/${database}?host=${encodeURIComponent(socketDir)}`
}

/** The kernel's limit for the path of a unix socket is 107 bytes. */
function refuseLongPath(path: string): void {
  if (Buffer.byteLength(path) <= 107) return
  throw new Error(`The path ${path} is too long for a unix socket; choose a shorter directory.`)
}

/** Forwards each line to the log; returns a function that returns the newest one. */
function forwardLines(server: ChildProcess, log: Log): () => string | undefined {
  let last: string | undefined
  if (server.stderr) {
    createInterface({ input: server.stderr }).on('line', (line) => {
      last = line
      log.debug({ line }, 'postgres')
    })
  }
  return () => last
}

async function waitUntilReady(server: ChildProcess, attempt: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (hasEnded(server) || performance.now() > deadline) throw error
      await delay(POLL_EVERY_MS)
    }
  }
}

/** Fast shutdown, then immediate shutdown, then a kill of the whole process group. */
async function stopServer(server: ChildProcess, exited: Promise<void>): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (hasEnded(server)) return
    server.kill(signal)
    await Promise.race([exited, delay(STOP_TIMEOUT_MS, undefined, { ref: false })])
  }
}

function hasEnded(server: ChildProcess): boolean {
  return server.exitCode !== null || server.signalCode !== null
}
