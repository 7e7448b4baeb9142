// An upgrade keeps the data of an installation made by an older release (test/support/recorded-installation.ts), here after
// a restart of the host, so that nothing of it is running. Every unit is there and wakes with its disks, endpoints keep their
// names, keys work, and the ledger is unchanged. An upgrade without a restart of the host cannot be tested with a recording;
// scripts/record-installation.ts does that.

import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { openImages } from '../../src/engine/oci/images/images.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import { verifyLedgerOfTeam } from '../../src/store/verify-ledger.ts'
import { startPostgres } from '../../src/supervisor/postgres.ts'
import { IMAGES_DIR } from '../support/berth.ts'
import { exec, listUnits } from '../support/berth-units.ts'
import { expectInvariants, withDatabase } from '../support/host-invariants.ts'
import { plainImagesOptions } from '../support/images.ts'
import {
  layOut,
  loadDatabase,
  type Recorded,
  type RecordedDatabase,
  readRecorded,
} from '../support/recorded-installation.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)
let recorded: Recorded
/** Units as listed right after the start. */
let units: Unit[]

beforeAll(async () => {
  recorded = await readRecorded()
  const scratch = await mkdtemp('/run/berth-test-')
  await chmod(scratch, 0o711)
  const digest = await digestHere('berth.local/debian:12', scratch)
  await layOut(recorded, berth.dataDir, () => digest)
  await putDatabase(recorded.database, scratch)
  await rm(scratch, { recursive: true })
  await berth.start({ BERTH_ISOLATION: 'runc', BERTH_FROZEN_FOR: 'never' })
  units = await listUnits(berth)
})

/** Returns the digest of an image as built on this host. */
async function digestHere(reference: string, scratch: string): Promise<string> {
  const runDir = join(scratch, 'images')
  const images = await openImages({
    ...plainImagesOptions,
    imagesDir: IMAGES_DIR,
    runDir,
    clock: systemClock,
  })
  const { digest } = await images.pull(reference)
  await images.close()
  return digest
}

async function putDatabase(database: RecordedDatabase, scratch: string): Promise<void> {
  const socketDir = join(scratch, 'socket')
  const postgres = await startPostgres({ dataDir: berth.dataDir, socketDir, log: silentLog })
  const admin = new pg.Client(postgres.url('postgres', 'berth'))
  await admin.connect()
  await loadDatabase(admin, database)
  await admin.end()
  await postgres.stop()
}

const named = (name: string): Unit => {
  const unit = units.find((each) => each.name === name)
  if (!unit) throw new Error(`there is no unit ${name}`)
  return unit
}
const rowsOf = (table: string) =>
  (recorded.database.tables[table] ?? []).map(
    (row) => JSON.parse(row) as Record<string, string | number | null>,
  )

it('an upgrade keeps all units; those that were running are asleep because the host lost them', () => {
  const told = (all: Unit[]) =>
    all.map(({ id, name, state, stoppedReason }) => ({ id, name, state, stoppedReason }))
  const lost = { state: 'sleeping', stoppedReason: 'provider' }
  const expected = told(recorded.units).map((unit) =>
    unit.state === 'running' ? { ...unit, ...lost } : unit,
  )
  expect(told(units)).toEqual(expected)
  const states = recorded.units.map(({ state }) => state).toSorted()
  expect(states).toEqual(['running', 'running', 'running', 'sleeping', 'sleeping', 'stopped'])
})

it('an upgrade keeps the name of each endpoint, with the secret of a private one', () => {
  const hosts = (all: Unit[]) =>
    all.flatMap(({ endpoints }) =>
      endpoints.map(({ id, mode, url }) => ({
        id,
        mode,
        host: new URL(url.replace(/^\w+:/, 'https:')).hostname,
      })),
    )
  expect(hosts(units)).toEqual(hosts(recorded.units))
  expect(
    hosts(units)
      .map(({ mode }) => mode)
      .toSorted(),
  ).toEqual(['private', 'private', 'public'])
})

it('an upgrade keeps the certificate authority that clients trust', async () => {
  const { content } = recorded.files['ca/ca.crt'] ?? {}
  const kept = await readFile(berth.credentials.caFile ?? '', 'base64')
  expect(kept).toBe(content)
})

it('an upgrade keeps valid keys valid and revoked keys revoked', async () => {
  const ask = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` }
    return (await fetch(`${berth.credentials.baseUrl}/v1/units`, { headers })).status
  }
  expect(recorded.keys.good).toHaveLength(2)
  for (const key of recorded.keys.good) expect(await ask(key)).toBe(200)
  expect(await ask(recorded.keys.revoked)).toBe(401)
  expect(berth.credentials.apiKey).toBe(recorded.keys.good[0])
})

it('an upgrade keeps every charge and credit to the nano-cent, and the ledger is correct', async () => {
  await withDatabase(await berth.instance(), async (db) => {
    const charges = await db
      .selectFrom('charges')
      .select(['unit_id', 'meter_id', 'from_ms', 'nano_cents'])
      .execute()
    const amounts = new Map(
      charges.map((row) => [`${row.unit_id} ${row.meter_id} ${row.from_ms}`, row.nano_cents]),
    )
    const before = rowsOf('charges')
    expect(before.length).toBeGreaterThan(4)
    for (const row of before)
      expect(amounts.get(`${row.unit_id} ${row.meter_id} ${row.from_ms}`)).toBe(
        BigInt(row.nano_cents as number),
      )
    const credits = await db.selectFrom('credits').select(['id', 'nano_cents']).orderBy('id').execute()
    expect(credits.map(({ id, nano_cents }) => ({ id, nano_cents: Number(nano_cents) }))).toEqual(
      rowsOf('credits').map(({ id, nano_cents }) => ({ id, nano_cents })),
    )
    for (const { id } of rowsOf('teams')) expect(await verifyLedgerOfTeam(db, String(id))).toEqual([])
  })
})

it('an upgrade bills a lost run only until the last heartbeat of the older release', async () => {
  const [heartbeat] = rowsOf('heartbeats')
  const lost = rowsOf('meters').filter((row) => row.kind === 'compute' && row.ended_at === null)
  expect(lost).toHaveLength(3)
  await withDatabase(await berth.instance(), async (db) => {
    const ids = lost.map(({ id }) => BigInt(id as number))
    const meters = await db.selectFrom('meters').select('ended_at').where('id', 'in', ids).execute()
    expect(meters).toHaveLength(3)
    const lastSeen = Date.parse(String(heartbeat?.at))
    for (const { ended_at } of meters) expect(ended_at?.getTime()).toBeLessThanOrEqual(lastSeen)
  })
})

it('after an upgrade each unit wakes with its root, volume, secrets and fork generation', async () => {
  const stopped = await berth.call('POST', `/v1/units/${named('stopped').id}/start`)
  expect(stopped.status, JSON.stringify(stopped.body)).toBe(200)
  for (const unit of units) {
    // A copy has the files of its source.
    const writer = unit.name === 'fork' ? 'source' : unit.name
    const { stdout } = await exec(berth, unit, ['cat', '/root/mark', '/data/mark'])
    expect(stdout).toBe(`root of ${writer}\nvolume of ${writer}\n`)
  }
  expect((await exec(berth, named('running'), ['printenv', 'WORD'])).stdout).toBe('hidden\n')
  expect((await exec(berth, named('fork'), ['cat', '/run/berth/fork-generation'])).stdout.trim()).toBe('1')
  await expectInvariants(berth)
})
