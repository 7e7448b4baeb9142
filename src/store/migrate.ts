// Migrates a database to the schema of this release. Each migration has its own file; a released one never changes.

import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Database } from './schema.ts'
import { adoptBaseline, BASELINE, up as baseline } from './migrations/0028-baseline.ts'
import { up as logsAndMemoryKept } from './migrations/0029-logs-and-memory-kept.ts'
import { up as repeatableSql } from './migrations/0031-repeatable-sql.ts'
import { up as oauth } from './migrations/0033-oauth.ts'
import { up as lists } from './migrations/0034-lists.ts'
import { up as auditFilters } from './migrations/0035-audit-filters.ts'
import { up as metersOfTeam } from './migrations/0036-meters-of-team.ts'
import { up as egress } from './migrations/0037-egress.ts'
import { up as hosts } from './migrations/0038-hosts.ts'
import { up as brokeredSecrets } from './migrations/0040-brokered-secrets.ts'
import { up as egressLog } from './migrations/0041-egress-log.ts'
import { up as factsOfHosts } from './migrations/0044-facts-of-hosts.ts'
import { up as hostEvents } from './migrations/0046-host-events.ts'
import { up as gatewaysOfHosts } from './migrations/0047-gateways-of-hosts.ts'
import { up as membersSince } from './migrations/0048-members-since.ts'
import { up as certificatesOfHosts } from './migrations/0049-certificates-of-hosts.ts'
import { up as unitsInRules } from './migrations/0050-units-in-rules.ts'
import { up as unitsOfLostHosts } from './migrations/0051-units-of-lost-hosts.ts'
import { up as versionsOfHosts } from './migrations/0052-versions-of-hosts.ts'
import { up as runtimesOfUnits } from './migrations/0053-runtimes-of-units.ts'
import { up as metadataAndEnds } from './migrations/0054-metadata-and-ends.ts'
import { up as metricsOfUnits } from './migrations/0055-metrics-of-units.ts'
import { up as requestsOfSecrets } from './migrations/0056-requests-of-secrets.ts'
import { up as nodesOfHosts } from './migrations/0057-nodes-of-hosts.ts'
import { up as hostsOfRoutes } from './migrations/0058-hosts-of-routes.ts'
import { up as portRules } from './migrations/0060-port-rules.ts'
import { up as hostedAgents } from './migrations/0061-hosted-agents.ts'
import { up as checkpointsOfUnits } from './migrations/0062-checkpoints-of-units.ts'
import { errorCodeOf } from '../lib/error-code.ts'
import { applyRepeatableSql, isRepeatableSqlApplied } from './repeatable.ts'

type RunStep = (step: Migration, on: Kysely<unknown>, name: string) => Promise<void>

const migrations: Record<string, Migration> = {
  [BASELINE]: { up: baseline },
  '0029-logs-and-memory-kept': { up: logsAndMemoryKept },
  '0031-repeatable-sql': { up: repeatableSql },
  '0033-oauth': { up: oauth },
  '0034-lists': { up: lists },
  '0035-audit-filters': { up: auditFilters },
  '0036-meters-of-team': { up: metersOfTeam },
  '0037-egress': { up: egress },
  '0038-hosts': { up: hosts },
  '0040-brokered-secrets': { up: brokeredSecrets },
  '0041-egress-log': { up: egressLog },
  '0044-facts-of-hosts': { up: factsOfHosts },
  '0046-host-events': { up: hostEvents },
  '0047-gateways-of-hosts': { up: gatewaysOfHosts },
  '0048-members-since': { up: membersSince },
  '0049-certificates-of-hosts': { up: certificatesOfHosts },
  '0050-units-in-rules': { up: unitsInRules },
  '0051-units-of-lost-hosts': { up: unitsOfLostHosts },
  '0052-versions-of-hosts': { up: versionsOfHosts },
  '0053-runtimes-of-units': { up: runtimesOfUnits },
  '0054-metadata-and-ends': { up: metadataAndEnds },
  '0055-metrics-of-units': { up: metricsOfUnits },
  '0056-requests-of-secrets': { up: requestsOfSecrets },
  '0057-nodes-of-hosts': { up: nodesOfHosts },
  '0058-hosts-of-routes': { up: hostsOfRoutes },
  '0060-port-rules': { up: portRules },
  '0061-hosted-agents': { up: hostedAgents },
  '0062-checkpoints-of-units': { up: checkpointsOfUnits },
}

// A lock of this file: the migrator takes its own only after it has looked for its tables.
const LOCK = sql`pg_advisory_xact_lock(hashtext('berth migrate'))`

/** Each waits as long as the connection's `lock_timeout` says: five minutes in all. */
const LOCK_TRIES = 30
/** Postgres' `lock_not_available`. */
const LOCK_NOT_AVAILABLE = '55P03'
const UNDEFINED_TABLE = '42P01'

/**
 * Runs the missing migrations, and then the repeatable SQL, in one transaction: after a failure the database is
 * unchanged. Several processes may run it at once, any number of times. Where another session holds a lock, it rolls back
 * after the `lock_timeout`, so that calls of others do not queue behind it for long, and tries again. Throws if a step fails.
 *
 * @param onLocked Called each time a lock was not available and another try follows.
 */
export async function migrate(db: Kysely<Database>, onLocked: () => void = () => {}): Promise<void> {
  if (await isMigrated(db)) return
  for (let tries = 1; ; tries += 1) {
    try {
      return await migrateOnce(db)
    } catch (error) {
      if (tries === LOCK_TRIES || !isLockMissed(error)) throw error
      onLocked()
    }
  }
}

/** Whether a newer release has used the database, whose schema this one does not know. */
export async function isOfNewerRelease(db: Kysely<Database>): Promise<boolean> {
  const known = Object.keys(migrations)
  const { rows } = await sql<{ name: string }>`
    select name from kysely_migration where name > ${known.at(-1) ?? ''} limit 1`.execute(db)
  return rows.length > 0
}

/** With two statements and no lock: the migrator asks a fifth of a second on a busy machine, while callers may wait. */
async function isMigrated(db: Kysely<Database>): Promise<boolean> {
  const query = sql<{ name: string }>`select name from kysely_migration order by name`
  const done = await query.execute(db).catch((error: unknown) => {
    if (errorCodeOf(error) !== UNDEFINED_TABLE) throw error
    return { rows: [] }
  })
  const isSame = done.rows.map(({ name }) => name).join() === Object.keys(migrations).toSorted().join()
  return isSame && (await isRepeatableSqlApplied(db))
}

async function migrateOnce(db: Kysely<Database>): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await sql`select ${LOCK}`.execute(transaction)
    await adoptBaseline(transaction)
    await runMigrations(transaction)
    await applyRepeatableSql(transaction)
  })
}

/** @param run Runs a step; what it throws fails the migration. */
function createMigrator(db: Kysely<Database>, run: RunStep): Migrator {
  const steps = Object.entries(migrations).map(([name, step]): [string, Migration] => [
    name,
    { up: async (on) => await run(step, on, name) },
  ])
  return new Migrator({ db, provider: { getMigrations: async () => Object.fromEntries(steps) } })
}

async function runMigrations(db: Kysely<Database>): Promise<void> {
  const { rows } = await sql<{ value: string }>`select current_setting('lock_timeout') as value`.execute(db)
  // The migrator's library raises it to an hour, for a lock of its own.
  const keepLockTimeout = sql`select set_config('lock_timeout', ${rows[0]?.value ?? '0'}, true)`
  let failed: { name: string; cause: unknown } | null = null
  const migrator = createMigrator(db, async (step, on, name) => {
    await keepLockTimeout.execute(on)
    try {
      await step.up(on)
    } catch (cause) {
      // The library's own error is that of its next statement in the failed transaction.
      failed = { name, cause }
      throw cause
    }
  })
  const { error } = await migrator.migrateToLatest()
  if (error) throw migrationError(failed ?? { name: null, cause: error })
  await keepLockTimeout.execute(db)
}

function migrationError({ name, cause }: { name: string | null; cause: unknown }): Error {
  const reason = cause instanceof Error ? cause.message : 'the reason is unknown'
  const [, unknown] = /previously executed migration (\S+) is missing/.exec(reason) ?? []
  if (unknown !== undefined) return new Error(isNewer(unknown), { cause })
  return new Error(`The migration ${name ?? 'of the database'} failed: ${reason}`, { cause })
}

function isLockMissed(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('code' in error && error.code === LOCK_NOT_AVAILABLE) || isLockMissed(error.cause)
}

function isNewer(migration: string): string {
  return (
    `The database was last used by a newer release of Berth (its step ${migration} is unknown here): start that release ` +
    `again, or restore a backup from before the update.`
  )
}
