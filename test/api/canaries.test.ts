// Reliability S22 and S23: a marked secret goes into every place that a caller may put one, through calls that
// succeed, are refused and fail, at the most verbose log level. Afterwards no table has it unencrypted, and no log
// line, audit row or refusal has it at all.

import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AuditList } from '../../src/contract/audit.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createSignInLink } from '../../src/domain/credentials/sign-in.ts'
import { makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const MARK = 'c4nary7f3a9c'
const hosts = ['api.example.com']

let service: Service
let team: TestTeam
let cookie: string
/** Bodies of refusals and failures. */
const refusals: string[] = []
/** Tokens and secrets that the server issued. */
const given: string[] = []

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  cookie = await makeSession(service, team)
  given.push(team.key, cookie.split('=')[1] ?? '', (await createSignInLink(service.app, team.email)).token)
  await useEverything()
})
afterAll(async () => await service.close())

let count = 0
/** Each place has its own text, so that a leak shows where it comes from. */
const canary = (place: string) => `${MARK}-${place}`

const commands = () => [
  ['psql', `--password=${canary('option')}`],
  ['psql', '--password', canary('next-argument')],
  ['mysql', '-uroot', `-p${canary('short')}`],
  ['sh', '-c', `PGPASSWORD=${canary('prefix')} psql -c 'select 1'`],
  ['psql', `postgres://app:${canary('userinfo')}@db/shop`],
  ['curl', '-H', `Authorization: Bearer ${canary('bearer')}`, 'http://x'],
  ['curl', '-H', `Authorization: Digest ${canary('digest')}`, 'http://x'],
  ['curl', '-H', `Cookie: sid=${canary('cookie')}`, 'http://x'],
  ['curl', '-u', `app:${canary('user')}`, 'http://x'],
  ['redis-cli', '-a', canary('redis')],
]

function specWith(): Record<string, unknown> {
  return {
    name: `canaries-${(count += 1)}`,
    image: 'node:22',
    ports: [80],
    env: {
      TOKEN: { secret: 'TOKEN', value: canary('env') },
      MADE: { secret: 'MADE' },
      BROKERED: { secret: 'BROKERED', value: canary('brokered'), hosts },
    },
    files: { '/etc/app.conf': canary('boot-file') },
    cmd: ['sleep', 'infinity'],
  }
}

async function ask<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await service.call<T>(method, path, { key: team.key, body, headers })
  if (answer.status >= 400) refusals.push(JSON.stringify(answer.body))
  return answer
}

async function useEverything(): Promise<void> {
  const headers = { 'idempotency-key': 'a create with secrets' }
  const body = { spec: specWith(), expose: 'private' }
  type Made = { units: Unit[]; outputs: Record<string, string> }
  const made = await ask<Made>('POST', '/v1/units', body, headers)
  const again = await ask<Made>('POST', '/v1/units', body, headers)
  expect(again.body).toEqual(made.body)
  const [unit] = made.body.units
  if (!unit) throw new Error(JSON.stringify(made.body))
  given.push(made.body.outputs['MADE'] ?? '', labelSecret(unit))
  const path = `/v1/units/${unit.id}`
  await ask('POST', `${path}/files`, { path: '/f', contentBase64: btoa(canary('file')) })
  await service.fetch('PUT', `${path}/files?path=/g`, { key: team.key, body: canary('put') })
  const rotated = await ask<Unit>('POST', `${path}/expose`, { port: 80, rotate: true })
  expect(rotated.status).toBe(200)
  given.push(labelSecret((await ask<Unit>('GET', path)).body))
  for (const cmd of commands()) await ask('POST', `${path}/exec`, { cmd, stdin: canary('stdin') })

  await ask('PUT', '/v1/secrets/KEY', { value: canary('team-secret'), hosts })
  await ask('POST', '/v1/units', { spec: { ...specWith(), env: { KEY: { teamSecret: 'KEY' } } } })
  service.engine.fail('restrict', 'internal')
  await ask('PUT', '/v1/secrets/KEY', { value: canary('replaced-secret'), hosts })

  const agent = { key: { value: canary('key-of-a-recipe') }, version: 'latest' }
  expect((await ask('POST', '/v1/units', { recipe: 'codex', params: agent, wait: false })).status).toBe(201)

  // Calls that are refused, and calls that fail.
  await ask('POST', '/v1/units', { recipe: 'codex', params: { ...agent, version: '' } })
  await ask('PUT', '/v1/secrets/KEY', { value: `${canary('two-lines')}\n`, hosts })
  await ask('PUT', '/v1/secrets/KEY', { value: canary('no-host'), hosts: ['*.example.com'] })
  await ask('PUT', `/v1/secrets/1KEY`, { value: canary('bad-name'), hosts })
  await ask('POST', '/v1/units', { spec: { ...specWith(), size: canary('size') } })
  await ask('POST', '/v1/units', { spec: { ...specWith(), files: { '/x': { base64: canary('base64') } } } })
  await ask('POST', `${path}/exec`, { cmd: [], stdin: canary('refused-stdin') })
  for (const cmd of commands()) {
    service.engine.fail('exec', 'internal')
    await ask('POST', `${path}/exec`, { cmd, stdin: canary('failed-stdin') })
  }
  for (const step of ['pull', 'create', 'start'] as const) {
    service.engine.fail(step, 'internal')
    await ask('POST', '/v1/units', { spec: specWith() })
  }
  const key = { name: 'a key', policy: {} }
  const people = { cookie, headers: { origin: service.baseUrl }, body: key }
  given.push((await service.call<{ secret: string }>('POST', '/v1/keys', people)).body.secret)
}

/** The secret part in the host of a private URL. */
function labelSecret({ endpoints: [endpoint] }: Unit): string {
  const label = new URL(endpoint?.url ?? '').hostname.split('.')[0] ?? ''
  return label.split('-').at(-1) ?? ''
}

/** Every row of every table as text, with bytes in hexadecimal. */
async function wholeDatabase(): Promise<{ table: string; text: string }[]> {
  const { db } = service.app
  const tables = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'
  `.execute(db)
  return await Promise.all(
    tables.rows.map(async ({ name }) => {
      const query = sql<{ text: string }>`select row::text as text from ${sql.table(name)} row`
      const { rows } = await query.execute(db)
      return { table: name, text: rows.map(({ text }) => text).join('\n') }
    }),
  )
}

const hex = (text: string) => Buffer.from(text).toString('hex')

describe('the secrets of a caller (S22, and S20 for private URLs)', () => {
  it('take part in calls that succeed, are refused and fail', () => {
    expect(given.every((secret) => secret.length >= 16)).toBe(true)
    expect(refusals.length).toBeGreaterThan(15)
    for (const code of ['validation', 'provider_error']) {
      expect(refusals.some((body) => body.includes(`"${code}"`))).toBe(true)
    }
  })

  it('are in no table, unless encrypted', async () => {
    const database = await wholeDatabase()
    expect(database.find(({ table }) => table === 'audit')?.text).toContain('unit.exec')
    for (const { table, text } of database) {
      for (const secret of [MARK, ...given]) {
        const found = text.includes(secret) || text.includes(hex(secret))
        expect([table, secret, found]).toEqual([table, secret, false])
      }
    }
  })

  it('are in no log line at the most verbose level', () => {
    const log = service.logged.join('')
    expect(log.length).toBeGreaterThan(1000)
    for (const secret of [MARK, ...given]) expect(log).not.toContain(secret)
  })

  it('are in no refusal', () => {
    for (const body of refusals) for (const secret of [MARK, ...given]) expect(body).not.toContain(secret)
  })
})

describe('any name that a client gives itself (S23)', () => {
  // In bytes, the fourth is the character that reverses the direction of writing.
  const names = [
    '"}{"level":60',
    '</script><script>',
    'a'.repeat(5000),
    '\xe2\x80\xae',
    'h\xf6flich \\u2028 %0a',
  ]

  it('is recorded as one event and one log line of bounded printable text', async () => {
    for (const name of names) {
      const response = await service.fetch('GET', '/v1/units', {
        key: team.key,
        headers: { 'user-agent': name, 'x-request-id': 'shouting' },
      })
      expect(response.status).toBe(200)
      await response.arrayBuffer()
    }
    const { body } = await ask<AuditList>('GET', '/v1/audit?limit=50')
    const events = body.events.filter(({ requestId }) => requestId === 'shouting')
    expect(events).toHaveLength(names.length)
    for (const { userAgent } of events) expect(userAgent ?? '').toMatch(/^[\x20-\x7e]{0,300}$/)
    for (const line of service.logged) {
      expect(line.endsWith('\n') && line.indexOf('\n') === line.length - 1).toBe(true)
      expect(() => JSON.parse(line)).not.toThrow()
    }
  })
})
