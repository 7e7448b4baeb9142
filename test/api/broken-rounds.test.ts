// A connection to Postgres that breaks at any statement of a job, or of an operator’s grant (reliability F15): the
// run fails as in an outage, and the next run does what is left, once.

import type { Kysely } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import type { App } from '../../src/app.ts'
import { chargeMeters } from '../../src/domain/billing/charge.ts'
import { verifyLedger } from '../../src/domain/billing/verify-ledger.ts'
import { destroyErroredUnits } from '../../src/domain/units/destroy.ts'
import { hibernateFrozenUnits, sleepIdleUnits } from '../../src/domain/units/activity/idle.ts'
import { enforceLimits } from '../../src/domain/units/admission/stop-beyond-limits.ts'
import { reconcileMachines } from '../../src/domain/units/reconcile.ts'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { silentLog } from '../../src/lib/log.ts'
import type { Database } from '../../src/store/db.ts'
import { isOutage } from '../../src/store/outage.ts'
import { verifyLedgerOfTeam } from '../../src/store/verify-ledger.ts'
import { parseCommand, perform } from '../../src/operator/credits.ts'
import { type BreakableService, startBreakableService } from '../support/breakable-service.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import type { Side } from '../support/postgres-proxy.ts'
import type { Service } from '../support/service.ts'

let broken: BreakableService
let service: Service
let db: Kysely<Database>
beforeAll(async () => {
  broken = await startBreakableService()
  service = broken.service
  db = broken.db
})
afterAll(async () => await broken.close())

type Case = {
  round: (app: App) => Promise<void>
  /** Makes a unit that the job has work with. */
  prepare: (team: TestTeam) => Promise<Unit>
  /** The unit after the job. */
  becomes: Partial<Unit>
}

const unitUnused = async (team: TestTeam): Promise<Unit> => {
  const unit = await makeUnit(service, team, { sleep: '1m' })
  await reconcileMachines(service.app)
  service.clock.advance(2 * MINUTE)
  return unit
}

const cases: Record<string, Case> = {
  'that charges meters': {
    round: chargeMeters,
    prepare: async (team) => {
      const unit = await makeUnit(service, team, { sleep: 'never' })
      service.clock.advance(HOUR)
      return unit
    },
    becomes: { state: 'running' },
  },
  'that puts idle units to sleep': {
    round: sleepIdleUnits,
    prepare: unitUnused,
    becomes: { state: 'sleeping' },
  },
  'that hibernates frozen units': {
    round: hibernateFrozenUnits,
    prepare: async (team) => {
      const unit = await unitUnused(team)
      await sleepIdleUnits(service.app)
      await broken.settle()
      return unit
    },
    becomes: { state: 'sleeping' },
  },
  'that enforces limits': {
    round: enforceLimits,
    prepare: async (team) => {
      const unit = await makeUnit(service, team, { sleep: 'never' })
      await db
        .updateTable('credentials')
        .set((each) => ({
          policy: each.fn('jsonb_set', ['policy', each.val('{maxConcurrentUnits}'), each.val('0')]),
        }))
        .where('id', '=', team.keyId)
        .execute()
      return unit
    },
    becomes: { state: 'stopped', stoppedReason: 'cap' },
  },
  'that notices exits': {
    round: reconcileMachines,
    prepare: async (team) => {
      const unit = await makeUnit(service, team)
      service.clock.advance(MINUTE)
      service.engine.endProcess(unit.id, { code: 3 })
      return unit
    },
    becomes: {
      state: 'stopped',
      stoppedReason: 'exited',
      lastExit: { code: 3, oomKilled: false } as Unit['lastExit'],
    },
  },
  'that destroys failed units': {
    round: destroyErroredUnits,
    prepare: async (team) => {
      service.engine.fail('start', 'start_failed')
      const body = { spec: { name: 'web', image: 'node:22' } }
      const made = await service.call('POST', '/v1/units', { key: team.key, body })
      expect(made.status).toBe(502)
      service.clock.advance(2 * HOUR)
      const all = { key: team.key }
      const { body: listed } = await service.call<{ units: Unit[] }>('GET', '/v1/units', all)
      const [unit] = listed.units
      if (!unit) throw new Error('there is no unit')
      return unit
    },
    becomes: { state: 'destroyed' },
  },
  'that verifies the ledger': {
    round: verifyLedger,
    prepare: async (team) => await makeUnit(service, team),
    becomes: { state: 'running' },
  },
}

describe.each(Object.entries(cases))(
  'when the database connection breaks at any statement of the job %s',
  (_name, { round, prepare, becomes }) => {
    test.each<Side>(['before', 'after'])(
      '%s it runs, the next run completes the work once',
      async (side) => {
        for (let statement = 0; ; statement++) {
          const team = await makeTeam(service)
          const unit = await prepare(team)
          broken.proxy.breakAt(statement, side)
          const failure = await round(service.app).then(
            () => null,
            (error: unknown) => error,
          )
          const broke = broken.proxy.brokeAt()
          const where = `${side} ${statement}: ${broke}`
          if (failure !== null) expect([where, isOutage(failure)]).toEqual([where, true])
          await round(service.app)
          expect([where, await broken.settle()]).toEqual([where, []])
          const { body } = await service.call<Unit>('GET', `/v1/units/${unit.id}`, { key: team.key })
          expect([where, body]).toMatchObject([where, becomes])
          expect([where, await verifyLedgerOfTeam(db, team.teamId)]).toEqual([where, []])
          await service.call('DELETE', `/v1/units/${unit.id}`, { key: team.key })
          if (broke === null) break
        }
      },
      120_000,
    )
  },
)

test.each<Side>(['before', 'after'])(
  'credits are granted at most once when the connection breaks %s a statement of the grant',
  async (side) => {
    for (let statement = 0; ; statement++) {
      const { teamId } = await makeTeam(service)
      const command = parseCommand(['grant', teamId, '250', '--note', 'June'])
      if (command.kind === 'help') throw new Error('that is no grant')
      broken.proxy.breakAt(statement, side)
      const told = await perform({ db: service.app.db, log: silentLog }, command).catch(String)
      const broke = broken.proxy.brokeAt()
      const credits = db.selectFrom('credits').select('nano_cents').where('team_id', '=', teamId)
      const isTold = told.includes('250 euro cents')
      expect([broke, told, (await credits.execute()).length]).toEqual([broke, told, isTold ? 1 : 0])
      if (broke === null) break
    }
  },
)
