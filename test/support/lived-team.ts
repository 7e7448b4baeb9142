// A team that has been used for a while, for pictures: units that ran and slept, agents, secrets, spend and an audit log.

import { sql } from 'kysely'
import { fillTeam } from '../../bench/filled-team.ts'
import { grantCredits } from '../../src/domain/credits/grant.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { HOUR, MINUTE } from '../../src/lib/clock.ts'
import { makeKey, makeTeam, makeUnit, type TestTeam } from './make.ts'
import type { Service } from './service.ts'

export type LivedTeam = TestTeam & { unit: Unit }

const units = [
  { name: 'web', image: 'berth.local/nginx:1.22', ports: [80], size: 'small', stack: 'shop' },
  { name: 'orders', image: 'berth.local/node:22', ports: [3000], size: 'medium', stack: 'shop' },
  { name: 'shop-db', image: 'berth.local/postgres:15', size: 'small', stack: 'shop' },
  { name: 'docs-preview', image: 'berth.local/nginx:1.22', ports: [80], size: 'small' },
  { name: 'fix-login', image: 'berth.local/python:3.11', size: 'medium' },
  { name: 'nightly-report', image: 'berth.local/python:3.11', size: 'small' },
] as const

/** Its first unit has a day of samples, with a sleep in it. */
export async function makeLivedTeam(service: Service): Promise<LivedTeam> {
  const team = await makeTeam(service)
  const { db } = service.app
  await grantCredits(db, { teamId: team.teamId, cents: 2500, note: 'for a picture', at: service.clock.now() })
  await db.updateTable('users').set({ name: 'Ada Brandt' }).where('id', '=', team.userId).execute()
  await db.updateTable('teams').set({ name: 'Harbour' }).where('id', '=', team.teamId).execute()
  await db.updateTable('credentials').set({ name: 'deploy' }).where('id', '=', team.keyId).execute()
  const agent = await makeKey(service, team)
  await db.updateTable('credentials').set({ name: 'claude-code' }).where('id', '=', agent.id).execute()
  const call = async (method: string, path: string, body?: unknown, key = agent.secret) =>
    await service.call(method, path, { key, body })
  const made: Unit[] = []
  for (const { name, image, size, ...more } of units) {
    const { stack, ports } = { stack: undefined, ports: [], ...more }
    const body = { spec: { name, image, size, ports, sleep: '2h' }, ...(stack && { stack }) }
    const answer = await service.call<{ units: Unit[] }>('POST', '/v1/units', { key: agent.secret, body })
    made.push(...answer.body.units)
  }
  const [unit, , , preview, , report] = made
  if (!unit || !preview || !report) throw new Error('The team has no units.')
  for (const { id } of made) await insertHistory(service, id)
  for (const path of ['/', '/styles.css', '/orders', '/orders/17', '/favicon.svg'])
    service.engine.print(unit.id, `203.0.113.7 - - "GET ${path} HTTP/1.1" 200`)
  await call('POST', `/v1/units/${unit.id}/expose`, { port: 80, mode: 'public' }, team.key)
  await call('POST', `/v1/units/${unit.id}/exec`, { cmd: ['sh', '-c', 'nginx -t && nginx -s reload'] })
  await call('PUT', `/v1/units/${unit.id}/files?path=/var/www/html/index.html`, 'hello')
  await call('POST', `/v1/units/${preview.id}/sleep`, { sleep: '30m', now: true })
  await call('POST', `/v1/units/${report.id}/stop`, {}, team.key)
  await call(
    'PUT',
    '/v1/secrets/OPENAI_API_KEY',
    { value: 'sk-proj-0000', hosts: ['api.openai.com'] },
    team.key,
  )
  await call('POST', `/v1/units/${unit.id}/fork`, { name: 'web-try' })
  await sql`analyze`.execute(db)
  return { ...team, unit }
}

/** Samples of a day by the minute and of a month by the hour: a rise around noon, and no rows where it slept. */
async function insertHistory({ app }: Service, unitId: string): Promise<void> {
  const now = app.clock.now()
  for (const { step, stepMs, steps } of [
    { step: 'minute', stepMs: MINUTE, steps: 1440 },
    { step: 'hour', stepMs: HOUR, steps: 720 },
  ])
    await sql`
      insert into unit_metrics
      select ${unitId}, ${step}, date_trunc(${step}, ${now}::timestamptz, 'UTC') - n * ${`${stepMs} ms`}::interval, 1, 0, 0, 0,
        ${stepMs}::float * (0.04 + 0.3 * day.part * day.part + 0.05 * random()), 6e7 + 8e7 * day.part, ${stepMs}::float * 4 * day.part, ${stepMs}::float * 30 * day.part
      from generate_series(1, ${steps}::int) n
      cross join lateral (select greatest(0, sin(n * ${stepMs}::float * 2 * pi() / 864e5)) as part) day
      where day.part > 0 or (n * ${stepMs}::bigint) % 86400000 > 70000000
      on conflict do nothing
    `.execute(app.db)
}

const longest = 'a-name-as-long-as-names-may-be-z'

/** The same with more than anybody has: 2,000 units, the longest names, words from right to left. */
export async function makeFullTeam(service: Service): Promise<LivedTeam> {
  const team = await makeLivedTeam(service)
  const { db } = service.app
  const names = ['مساعد البناء والاختبار', 'עוזר', `key-${'x'.repeat(59)}`]
  const keys = []
  for (const name of names) {
    const { id } = await makeKey(service, team)
    await db.updateTable('credentials').set({ name }).where('id', '=', id).execute()
    keys.push(id)
  }
  await fillTeam(db, { teamId: team.teamId, units: 2000, audit: 5000, keyIds: keys })
  const unit = await makeUnit(service, team, {
    name: longest,
    image: `ghcr.io/${'a-repository-with-a-long-name/'.repeat(4)}image:tag`,
    ports: [80, 443, 3000, 5173, 8000, 8080],
    env: { [`A_${'LONG_'.repeat(12)}NAME`]: 'مرحبا', GREETING: 'שלום' },
    metadata: { المشروع: 'متجر', [`label-${'y'.repeat(50)}`]: 'z'.repeat(120) },
  })
  await insertHistory(service, unit.id)
  const { key } = team
  for (const line of ['echo مرحبا بالعالم', `printf ${'%s'.repeat(200)}`])
    await service.call('POST', `/v1/units/${unit.id}/exec`, { key, body: { cmd: ['sh', '-c', line] } })
  for (let fork = 0; fork < 4; fork += 1)
    await service.call('POST', `/v1/units/${unit.id}/fork`, { key, body: { name: `fork-${fork}` } })
  await db
    .updateTable('teams')
    .set({ name: 'فريق البنية التحتية في الشركة' })
    .where('id', '=', team.teamId)
    .execute()
  return { ...team, unit }
}
