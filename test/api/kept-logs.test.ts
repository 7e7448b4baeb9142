// The output of a unit whose create failed can be read like any other log until the unit is destroyed. Its machine is
// removed by then, and its owner wants to know why it failed.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { LogPage } from '../../src/contract/logs.ts'
import { limits } from '../../src/contract/limits.ts'
import { createForker, type Forker } from '../support/forks.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let as: Forker
/** Units of these names pass no healthcheck. */
const sick = new Set<string>()
let time: NodeJS.Timeout

beforeAll(async () => {
  service = await startService()
  service.engine.setMemory(false)
  as = createForker(service, () => team.key)
  service.engine.onExec(({ argv: [program, name = ''] }) =>
    program === 'probe' ? { exitCode: sick.has(name) ? 1 : 0 } : null,
  )
  time = setInterval(() => service.clock.advance(50), 5)
})
afterAll(async () => {
  clearInterval(time)
  await service.close()
})
beforeEach(async () => {
  team = await makeTeam(service)
  sick.clear()
})

const CANARY = 'canary-in-a-log'
const specOf = (name: string) => ({
  name,
  image: 'node:22',
  cmd: ['sh', '-c', `echo one; echo FATAL ${CANARY}; sleep infinity`],
  healthcheck: { cmd: ['probe', name], intervalMs: 500, timeoutMs: 1000 },
})

async function failToMake(name: string): Promise<string> {
  sick.add(name)
  const { status, body } = await as.call('POST', '/v1/units', { spec: specOf(name) })
  expect(status).toBe(502)
  return String(body.error.details['unitId'])
}

const logs = async (id: string, query = '', key = team.key) =>
  await service.call<LogPage>('GET', `/v1/units/${id}/logs${query}`, { key })
const texts = ({ body }: { body: LogPage }) => body.lines.map(({ text }) => text)

describe('the log of a unit whose create failed', () => {
  it('can be read after the create has answered, though the machine is removed', async () => {
    const id = await failToMake('web')
    expect(as.machineOf(id)).toBeUndefined()
    const all = await logs(id)
    expect(all.body.lines).toMatchObject([
      { stream: 'stdout', text: 'one' },
      { stream: 'stdout', text: `FATAL ${CANARY}` },
    ])
    expect(texts(await logs(id, '?limit=1'))).toEqual([`FATAL ${CANARY}`])
    expect(texts(await logs(id, `?since=${all.body.next}`))).toEqual([])
    expect(texts(await logs(id, `?since=${all.body.lines[0]?.at}&limit=1`))).toEqual(['one'])
    expect(texts(await logs(id, '?since=2000-01-01T00:00:00Z'))).toHaveLength(2)
    expect(texts(await logs(id, '?since=2999-01-01T00:00:00Z'))).toEqual([])
  })

  it('ends at once for a caller that follows it', async () => {
    const id = await failToMake('web')
    const headers = { accept: 'text/event-stream' }
    const path = `/v1/units/${id}/logs?follow=true`
    const answer = await service.fetch('GET', path, { key: team.key, headers })
    const said = await answer.text()
    expect(said).toContain(`FATAL ${CANARY}`)
    expect(said).toMatch(/event: end\ndata: \{"reason":"error"\}/)
  })

  it('can be read while the engine is down', async () => {
    const id = await failToMake('web')
    service.engine.fail('logs', 'engine_away')
    expect(texts(await logs(id))).toHaveLength(2)
    service.engine.heal('logs')
  })

  it('is readable by its team only, and stored encrypted', async () => {
    const id = await failToMake('web')
    const other = await makeTeam(service)
    expect((await logs(id, '', other.key)).status).toBe(403)
    const [row] = await service.app.db.selectFrom('kept_logs').selectAll().where('unit_id', '=', id).execute()
    expect(row?.sealed.length).toBeGreaterThan(0)
    expect(row?.sealed.includes(CANARY)).toBe(false)
    expect(service.logged.join('')).not.toContain(CANARY)
  })

  it('is deleted with its unit', async () => {
    const id = await failToMake('web')
    expect((await as.call('DELETE', `/v1/units/${id}`)).status).toBe(200)
    expect((await logs(id)).status).toBe(409)
    expect(
      await service.app.db.selectFrom('kept_logs').selectAll().where('unit_id', '=', id).execute(),
    ).toEqual([])
  })

  it('is kept for the newest such units of a team', async () => {
    const first = await failToMake('first')
    const later: string[] = []
    for (let made = 0; made < limits.keptLogsOfTeam; made += 10) {
      const names = Array.from({ length: 10 }, (_, i) => `unit-${made + i}`)
      later.push(...(await Promise.all(names.map(failToMake))))
    }
    expect(texts(await logs(first))).toEqual([])
    for (const id of later) expect(texts(await logs(id))).toHaveLength(2)
  })
})

it('the log of a copy whose fork failed can be read too', async () => {
  await as.call('POST', '/v1/units', { spec: specOf('web'), stack: 'shop' })
  sick.add('web')
  const { status, body } = await as.forkStack('shop', { into: 'trial' })
  expect(status).toBe(502)
  const id = String(body.error.details['unitId'])
  expect(as.machineOf(id)).toBeUndefined()
  expect(texts(await logs(id))).toEqual(['one', `FATAL ${CANARY}`])
})
