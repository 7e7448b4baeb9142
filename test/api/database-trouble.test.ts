// A database that is down, read-only, out of connections or restored to an earlier second (reliability F15, F30):
// callers are told when to retry, nothing happens twice, and the ledger stays exact.

import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { reconcileMachines } from '../../src/domain/units/reconcile.ts'
import { HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { isOutage } from '../../src/store/outage.ts'
import { verifyLedgerOfTeam } from '../../src/store/verify-ledger.ts'
import { type BreakableService, startBreakableService } from '../support/breakable-service.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import type { Answer } from '../support/service.ts'

let broken: BreakableService
let team: TestTeam
const startWith = async (options: { loops: boolean }) => {
  broken = await startBreakableService(options)
  team = await makeTeam(broken.service)
}
afterEach(async () => await broken.close())

const call = <T>(method: string, path: string, body?: unknown, idempotencyKey?: string): Promise<Answer<T>> =>
  broken.service.call<T>(method, path, {
    key: team.key,
    ...(body === undefined ? {} : { body }),
    ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
  })

const create = (name: string) =>
  call<RunResult>('POST', '/v1/units', { spec: { name, image: 'node:22', sleep: 'never' } }, name)

function expectAway({ status, headers, body }: Answer): void {
  expect([status, body]).toMatchObject([503, { error: { code: 'unavailable' } }])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
}

/** Runs the statements as a superuser in the maintenance database. */
async function administer(...statements: string[]): Promise<void> {
  const [, query] = broken.databaseUrl.split('?')
  const host = new URLSearchParams(query).get('host') ?? ''
  const client = new pg.Client({ user: 'postgres', database: 'postgres', host })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}
const name = () => /\/(berth_\w+)\?/.exec(broken.databaseUrl)?.[1] ?? ''
const endConnections = () =>
  `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name()}'`

const names = async () => {
  const rows = await broken.db.selectFrom('units').select('name').orderBy('name').execute()
  return rows.map((row) => row.name)
}

async function expectWhole(): Promise<void> {
  expect(await broken.settle()).toEqual([])
  expect(await verifyLedgerOfTeam(broken.db, team.teamId)).toEqual([])
}

describe('a database that is down', () => {
  beforeEach(async () => await startWith({ loops: true }))

  test('for five minutes refuses calls, and is caught up with within a minute after it is back', async () => {
    const { service, proxy } = broken
    const unit = await makeUnit(service, team, { sleep: 'never' })
    await reconcileMachines(service.app)
    proxy.shut()
    for (let seconds = 0; seconds < 300; seconds++) {
      service.clock.advance(SECOND)
      if (seconds % 20 === 0) {
        expectAway(await create('meanwhile'))
        expectAway(await call('GET', `/v1/units/${unit.id}`))
        expectAway(await call('POST', `/v1/units/${unit.id}/stop`))
      }
    }
    expect(service.engine.machines()).toMatchObject([{ id: unit.id, generation: 1, state: 'running' }])
    await proxy.open()
    await expect.poll(async () => (await create('meanwhile')).status).toBe(201)
    expect((await call<Unit>('GET', `/v1/units/${unit.id}`)).body.state).toBe('running')
    expect(await names()).toEqual(['meanwhile', unit.name])
    service.clock.advance(MINUTE)
    await expectWhole()
    // Half a cent an hour, for the six minutes that it ran and a few real ones.
    const { costCentsSoFar } = (await call<Unit>('GET', `/v1/units/${unit.id}`)).body
    expect((costCentsSoFar / 0.5) * 60).toBeGreaterThan(5.9)
    expect((costCentsSoFar / 0.5) * 60).toBeLessThan(10)
  })

  test('again and again during work has each thing done once', async () => {
    let ended = 0
    const ending = (async () => {
      for (; ended < 20; ended++) {
        await administer(endConnections())
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })()
    const wanted = Array.from({ length: 12 }, (_, n) => `unit-${n + 10}`)
    const insist = async (each: string) => {
      for (;;) {
        const answer = await create(each)
        if (answer.status === 201) return
        expectAway(answer)
        broken.service.clock.advance(SECOND)
      }
    }
    await Promise.all(wanted.map(insist))
    await ending
    expect(await names()).toEqual(wanted)
    expect(broken.service.engine.machines()).toHaveLength(wanted.length)
    await expectWhole()
  })
})

describe('a database that', () => {
  beforeEach(async () => await startWith({ loops: false }))

  test('is read-only refuses writes with a time to retry, and accepts them later', async () => {
    const unit = await makeUnit(broken.service, team, { sleep: 'never' })
    await administer(`alter database ${name()} set default_transaction_read_only = on`, endConnections())
    expectAway(await create('late'))
    expectAway(await call('POST', `/v1/units/${unit.id}/stop`))
    await expect(broken.goRound()).rejects.toSatisfy(isOutage)
    broken.service.clock.advance(HOUR)
    await administer(`alter database ${name()} reset default_transaction_read_only`, endConnections())
    expect((await create('late')).status).toBe(201)
    expect((await call<Unit>('POST', `/v1/units/${unit.id}/stop`)).body.state).toBe('stopped')
    await expectWhole()
  })

  test('has one connection left serves the call that gets it, and refuses the others', async () => {
    const wanted = Array.from({ length: 20 }, (_, n) => `unit-${n + 10}`)
    await administer(`alter database ${name()} connection limit 1`, endConnections())
    const answers = await Promise.all(wanted.map(create))
    const refused = answers.filter(({ status }) => status !== 201)
    for (const answer of refused) expectAway(answer)
    await administer(`alter database ${name()} connection limit -1`)
    for (const each of wanted) {
      await broken.goRound()
      expect((await create(each)).status).toBe(201)
    }
    expect(await names()).toEqual(wanted)
    await expectWhole()
  })

  test('was restored to an earlier second runs and bills nothing twice, and logs what was lost', async () => {
    const { service, proxy, db } = broken
    const [kept, started, gone] = [await create('kept'), await create('started'), await create('gone')].map(
      ({ body }) => body.units[0]?.id ?? '',
    )
    await call('POST', `/v1/units/${started}/stop`)
    service.clock.advance(10 * MINUTE)
    await expectWhole()

    proxy.shut()
    const copy = `${name()}_copy`
    await administer(endConnections(), `create database ${copy} template ${name()} owner berth`)
    await proxy.open()
    const unknown = (await create('unknown')).body.units[0]?.id ?? ''
    expect((await call<Unit>('POST', `/v1/units/${started}/start`)).body.state).toBe('running')
    expect((await call('DELETE', `/v1/units/${gone}`)).status).toBe(200)
    service.clock.advance(SECOND)
    proxy.shut()
    await administer(
      endConnections(),
      `drop database ${name()} with (force)`,
      `alter database ${copy} rename to ${name()}`,
    )
    await proxy.open()

    const asked = await create('unknown')
    expect(asked.status).toBe(201)
    expect(asked.body.units[0]?.id).not.toBe(unknown)
    // Destroyed, with the destruction forgotten: the owner is told that the unit was lost, and may destroy it again.
    expect(await broken.settle()).toEqual([`${gone} is sleeping: its machine and disk are gone`])
    expect(await verifyLedgerOfTeam(db, team.teamId)).toEqual([])
    const states = await db.selectFrom('units').select(['id', 'state', 'stopped_reason']).execute()
    expect(states).toHaveLength(4)
    expect(states).toEqual(
      expect.arrayContaining([
        { id: kept, state: 'running', stopped_reason: null },
        { id: started, state: 'stopped', stopped_reason: 'user' },
        { id: gone, state: 'sleeping', stopped_reason: 'provider' },
        { id: asked.body.units[0]?.id, state: 'running', stopped_reason: null },
      ]),
    )
    const alarms = service.logged.filter((line) => line.includes('"alarm":"database"')).join('\n')
    expect(alarms).toContain(unknown)
    expect(alarms).toContain(started)
    for (const id of [kept, gone]) expect(alarms).not.toContain(id)
    expect((await call<Unit>('POST', `/v1/units/${started}/start`)).body.state).toBe('running')
    expect((await call('DELETE', `/v1/units/${gone}`)).status).toBe(200)
    await expectWhole()
  })
})
