// How long the audit log is kept (BERTH_AUDIT_DAYS).

import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDomain, type TestDomain } from '../../../test/support/domain.ts'
import { DAY, HOUR } from '../../lib/clock.ts'
import { firstIdSince } from '../../lib/ids.ts'
import { insertAuditRows } from '../../store/audit.ts'
import type { Caller } from '../credentials/caller.ts'
import { forgetOldAuditRows } from './forget.ts'

let domain: TestDomain
let caller: Caller

beforeAll(async () => {
  domain = await createTestDomain({ BERTH_AUDIT_DAYS: '30' })
  caller = await domain.makeCaller()
})
afterAll(async () => await domain.close())

async function plant(count: number, ageDays: number): Promise<void> {
  const startedAt = new Date(domain.clock.now().getTime() - ageDays * DAY)
  const row = {
    teamId: caller.teamId,
    credentialKind: caller.kind,
    credentialId: caller.credentialId,
    credentialName: caller.credentialName,
    userId: null,
    action: 'unit.list',
    target: `${ageDays} days`,
    input: null,
    requestId: 'planted',
    via: 'api' as const,
    agentName: null,
    agentVersion: null,
    userAgent: null,
    startedAt,
    outcome: null,
  }
  await insertAuditRows(
    domain.app.db,
    Array.from({ length: count }, (_, index) => ({ ...row, id: idOf(startedAt, index) })),
  )
}

/** An id of the given time. */
function idOf(at: Date, index: number): string {
  return firstIdSince('audit', at).slice(0, -8) + index.toString(16).padStart(8, '0')
}

async function left(): Promise<Record<string, number>> {
  const rows = await domain.app.db.selectFrom('audit').select('target').execute()
  const counts: Record<string, number> = {}
  for (const { target } of rows) counts[target ?? ''] = (counts[target ?? ''] ?? 0) + 1
  return counts
}

test('the job deletes audit rows after their time and not before, also when two processes do it at once', async () => {
  await plant(5000, 31)
  await plant(10, 29)
  await Promise.all([forgetOldAuditRows(domain.app), forgetOldAuditRows(domain.app)])
  expect(await left()).toEqual({ '29 days': 10 })
  domain.clock.advance(DAY + HOUR)
  await forgetOldAuditRows(domain.app)
  expect(await left()).toEqual({})
})

test('the job keeps audit rows for ever when BERTH_AUDIT_DAYS is 0', async () => {
  const app = { ...domain.app, config: { ...domain.app.config, auditDays: 0 } }
  await plant(10, 1000)
  await forgetOldAuditRows(app)
  expect(await left()).toEqual({ '1000 days': 10 })
})
