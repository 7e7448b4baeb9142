// Migrates a database to the schema of this release. Each migration has its own file; a released one never changes.

import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Database } from './schema.ts'
import { up as accounts } from './migrations/0001-accounts.ts'
import { up as units } from './migrations/0002-units.ts'
import { up as sleep } from './migrations/0003-sleep.ts'
import { up as idempotency } from './migrations/0004-idempotency.ts'
import { up as time } from './migrations/0005-time.ts'
import { up as endpoints } from './migrations/0006-endpoints.ts'
import { up as revision } from './migrations/0007-revision.ts'
import { up as frozenRoutes } from './migrations/0008-frozen-routes.ts'
import { up as gatewayPorts } from './migrations/0009-gateway-ports.ts'
import { up as stacks } from './migrations/0010-stacks.ts'
import { up as forks } from './migrations/0011-forks.ts'
import { up as auditLog } from './migrations/0012-audit-log.ts'
import { up as people } from './migrations/0013-people.ts'
import { up as teams } from './migrations/0014-teams.ts'
import { up as limits } from './migrations/0015-limits.ts'
import { up as ledger } from './migrations/0016-ledger.ts'
import { up as allowances } from './migrations/0017-allowances.ts'
import { up as recipes } from './migrations/0019-recipes.ts'
import { up as payments } from './migrations/0020-payments.ts'
import { up as leaders } from './migrations/0023-leaders.ts'
import { up as failedCreates } from './migrations/0024-failed-creates.ts'
import { up as disksThere } from './migrations/0025-disks-there.ts'
import { up as instances } from './migrations/0027-instances.ts'
import { up as orderOfEnv } from './migrations/0028-order-of-env.ts'
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
import { applyRepeatableSql } from './repeatable.ts'

type RunStep = (step: Migration, on: Kysely<unknown>, name: string) => Promise<void>

const migrations: Record<string, Migration> = {
  '0001-accounts': { up: accounts },
  '0002-units': { up: units },
  '0003-sleep': { up: sleep },
  '0004-idempotency': { up: idempotency },
  '0005-time': { up: time },
  '0006-endpoints': { up: endpoints },
  '0007-revision': { up: revision },
  '0008-frozen-routes': { up: frozenRoutes },
  '0009-gateway-ports': { up: gatewayPorts },
  '0010-stacks': { up: stacks },
  '0011-forks': { up: forks },
  '0012-audit-log': { up: auditLog },
  '0013-people': { up: people },
  '0014-teams': { up: teams },
  '0015-limits': { up: limits },
  '0016-ledger': { up: ledger },
  '0017-allowances': { up: allowances },
  '0019-recipes': { up: recipes },
  '0020-payments': { up: payments },
  '0023-leaders': { up: leaders },
  '0024-failed-creates': { up: failedCreates },
  '0025-disks-there': { up: disksThere },
  '0027-instances': { up: instances },
  '0028-order-of-env': { up: orderOfEnv },
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
}

// A lock of this file: the migrator takes its own only after it has looked for its tables.
const LOCK = sql`pg_advisory_xact_lock(hashtext('berth migrate'))`

/** Each waits as long as the connection's `lock_timeout` says: five minutes in all. */
const LOCK_TRIES = 30
/** Postgres' `lock_not_available`. */
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Runs the missing migrations, and then the repeatable SQL, in one transaction: after a failure the database is
 * unchanged. Several processes may run it at once, any number of times. Where another session holds a lock, it rolls back
 * after the `lock_timeout`, so that calls of others do not queue behind it for long, and tries again. Throws if a step fails.
 *
 * @param onLocked Called each time a lock was not available and another try follows.
 */
export async function migrate(db: Kysely<Database>, onLocked: () => void = () => {}): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await migrateOnce(db)
    } catch (error) {
      if (tries === LOCK_TRIES || !isLockMissed(error)) throw error
      onLocked()
    }
  }
}

async function migrateOnce(db: Kysely<Database>): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await sql`select ${LOCK}`.execute(transaction)
    await runMigrations(transaction)
    await applyRepeatableSql(transaction)
  })
}

/** @param run Runs a step; what it throws fails the migration. */
export function createMigrator(
  db: Kysely<Database>,
  run: RunStep = async (step, on) => await step.up(on),
): Migrator {
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
