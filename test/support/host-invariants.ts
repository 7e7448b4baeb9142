// What must hold of the whole product whenever nothing is under way: what is on the host is what the
// database says, nothing less and nothing more (reliability, section 5). Both sides are told as the same
// sentences, so that they can be compared exactly, and a difference reads as what is wrong.

import type { Kysely, Selectable } from 'kysely'
import { silentLog } from '../../src/lib/log.ts'
import { type Database, openDatabase } from '../../src/store/db.ts'
import type { UnitsTable } from '../../src/store/unit-record.ts'
import { type Instance, postgresSocketDir, runDirOf } from '../../src/supervisor/instance.ts'
import { postgresUrl } from '../../src/supervisor/postgres.ts'
import { type Berth, eventually } from './berth.ts'
import { hostFacts } from './host-facts.ts'
import { runFaults } from './invariants.ts'
import { differencesOf, instanceFacts, machineFacts } from './machine-facts.ts'
import { madeAsOf, withoutWaiting } from './ready-facts.ts'

type UnitRow = Selectable<UnitsTable>

/**
 * The reconciler looks every ten seconds and leaves alone what has changed within ten; a process that will
 * not go has ten more.
 */
const SETTLE_MS = 45_000

/** Passes at once where all is well. Fails with the sentences that only one side tells. */
export async function expectInvariants(berth: Berth, withinMs = SETTLE_MS): Promise<void> {
  await eventually(async () => {
    const differences = await findDifferences(berth)
    if (differences.length > 0)
      throw new Error(`The host is not as the database says:\n${differences.join('\n')}`)
  }, withinMs)
}

/** Sentences that only one side tells, `+` for the host's and `-` for the database's. */
export async function findDifferences(berth: Berth): Promise<string[]> {
  const instance = await berth.instance()
  const [wanted, found] = await Promise.all([
    databaseFacts(instance, berth.dataDir),
    hostFacts(instance, berth.dataDir),
  ])
  return differencesOf(wanted, withoutWaiting(found, wanted))
}

/** Rows, past the API, as root may read them. */
export async function withDatabase<T>(
  instance: Instance,
  work: (db: Kysely<Database>) => Promise<T>,
): Promise<T> {
  return await withDatabaseAt(postgresUrl(postgresSocketDir(runDirOf(instance)), 'berth'), work)
}

/** The same with the operator's own database. */
export async function withDatabaseAt<T>(url: string, work: (db: Kysely<Database>) => Promise<T>): Promise<T> {
  const db = openDatabase(url, silentLog)
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}

async function databaseFacts(instance: Instance, dataDir: string): Promise<string[]> {
  const { units, runs } = await withDatabase(instance, async (db) => ({
    units: await db.selectFrom('units').selectAll().orderBy('id').execute(),
    runs: await db.selectFrom('meters').selectAll().where('kind', '=', 'compute').orderBy('id').execute(),
  }))
  const kept = units.filter(({ state }) => state !== 'destroyed' && state !== 'error')
  const runsOf = ({ id }: UnitRow) => runs.filter((run) => run.unit_id === id)
  const facts = await Promise.all(kept.map(async (unit) => factsOf(unit, await madeAsOf(dataDir, unit.id))))
  return [
    ...units.flatMap((unit) => runFaults(unit, runsOf(unit))),
    ...instanceFacts(dataDir),
    ...facts.flat(),
  ]
}

function factsOf(unit: UnitRow, madeAs: string | undefined): string[] {
  const { id, generation, state, frozen, spec, address, isolation, network_group: group } = unit
  const isStanding = state === 'sleeping' && frozen
  if (state !== 'running' && state !== 'sleeping' && state !== 'stopped') return [`${id} is still ${state}`]
  const run = state === 'running' || isStanding ? { generation, frozen: isStanding } : null
  return machineFacts({ id, address, group, isolation, hasVolume: Boolean(spec.volume), run, madeAs })
}
