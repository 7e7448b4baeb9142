// `Idempotency-Key` (design 4, reliability F20): a create that is sent several times with one key makes one unit and
// has one answer.

import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Policy } from '../../src/contract/policy.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { unrestrictedPolicy } from '../../src/domain/credentials/unrestricted-policy.ts'
import { HOUR, MINUTE, SECOND } from '../../src/lib/clock.ts'
import { makeKey, makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { sendRaw } from '../support/raw-http.ts'
import { type Answer, type Service, startService } from '../support/service.ts'
import { isReplay, told } from '../support/replay.ts'

type Sent = { key?: string; cookie?: string; body?: unknown; headers?: Record<string, string> }

const spec = { name: 'web', image: 'node:22', env: { PASSWORD: { secret: 'db-password' } } }

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

let count = 0
const newKey = () => `key-${count++}`

const create = async (as: string, { key, cookie, body = { spec }, headers }: Sent = team) =>
  await service.call<RunResult>('POST', '/v1/units', {
    ...(cookie === undefined ? { key: key ?? team.key } : { cookie }),
    body,
    headers: { ...headers, 'idempotency-key': as },
  })

async function unitsOf({ key }: { key: string }): Promise<Unit[]> {
  return (await service.call<{ units: Unit[] }>('GET', '/v1/units?all=true', { key })).body.units
}

async function setPolicy({ keyId }: TestTeam, policy: Partial<Policy>): Promise<void> {
  await service.app.db
    .updateTable('credentials')
    .set({ policy: { ...unrestrictedPolicy, ...policy } })
    .where('id', '=', keyId)
    .execute()
}

describe('a repeated create with the same Idempotency-Key and body', () => {
  test('returns the same answer with the generated secrets, and makes nothing', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const first = await create(key, own)
    expect(first).toMatchObject({ status: 201, body: { units: [{ state: 'running' }] } })
    expect(first.body.outputs['db-password']).toMatch(/^[\w-]{32}$/)
    expect(isReplay(first)).toBe(false)
    // Cost and `sleepsAt` would be different by now.
    service.clock.advance(10 * MINUTE)
    for (let time = 0; time < 3; time++) {
      const again = await create(key, own)
      expect(told(again)).toEqual(told(first))
      expect(isReplay(again)).toBe(true)
      expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    }
    expect(await unitsOf(own)).toHaveLength(1)
  })

  test('is recognised with another order of fields, and with a default spelled out', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const first = await create(key, own)
    const { env, image, name } = spec
    const others = [
      JSON.stringify({ wait: true, spec: { size: 'small', ports: [], env, image, name } }),
      `{\n  "spec": ${JSON.stringify(spec, null, 4)} }`,
    ]
    for (const body of others) {
      const again = await create(key, { ...own, body, headers: { 'content-type': 'application/json' } })
      expect(told(again)).toEqual(told(first))
    }
    expect(await unitsOf(own)).toHaveLength(1)
  })

  test('makes one unit for twenty concurrent calls, which all get the same answer', async () => {
    // There is room for one unit, so an attempt to make a second would be refused.
    const own = await makeTeam(service, { maxConcurrentUnits: 1 })
    const key = newKey()
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(key, own)))
    const [first] = answers
    for (const answer of answers) expect(told(answer)).toEqual(told(first as Answer))
    expect(first?.status).toBe(201)
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
    expect(await unitsOf(own)).toHaveLength(1)
  })

  test('waits for a first call that is in progress', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const release = service.engine.hang('create')
    const calls = [create(key, own)]
    await expect.poll(async () => await unitsOf(own)).toHaveLength(1)
    calls.push(create(key, own), create(key, own))
    let answered = false
    for (const call of calls) void call.then(() => (answered = true))
    await delay(50)
    expect(answered).toBe(false)
    release()
    const answers = await Promise.all(calls)
    expect(answers.map(isReplay)).toEqual([false, true, true])
    expect(new Set(answers.map((answer) => JSON.stringify(told(answer)))).size).toBe(1)
    expect(answers[0]?.body.units[0]?.state).toBe('running')
  })

  test('returns the failure of the first create, with the request id of the repeated call', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    service.engine.fail('pull', 'image_not_found')
    const first = await create(key, own)
    expect(first).toMatchObject({ status: 502, body: { error: { details: { unitId: expect.any(String) } } } })
    const again = await create(key, { ...own, headers: { 'x-request-id': 'the-second-try' } })
    expect(told(again)).toEqual(told(first))
    expect(again.body).toMatchObject({ error: { requestId: 'the-second-try' } })
    expect(isReplay(again)).toBe(true)
    expect(await unitsOf(own)).toHaveLength(1)
  })

  test('returns the same answer after the unit was destroyed', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const first = await create(key, own)
    await service.call('DELETE', `/v1/units/${first.body.units[0]?.id}`, { key: own.key })
    expect(told(await create(key, own))).toEqual(told(first))
    expect(await unitsOf(own)).toMatchObject([{ state: 'destroyed' }])
  })

  test.each([{ wait: false }, { waitTimeoutMs: 0 }])(
    'returns the first answer under %j, with the unit still creating',
    async (impatience) => {
      const own = await makeTeam(service)
      const sent = { ...own, body: { spec, ...impatience } }
      const key = newKey()
      const release = service.engine.hang('create')
      const first = await create(key, sent)
      expect(first).toMatchObject({ status: 201, body: { units: [{ state: 'creating' }] } })
      release()
      await expect.poll(async () => (await unitsOf(own))[0]?.state).toBe('running')
      expect(told(await create(key, sent))).toEqual(told(first))
    },
  )

  test('is answered under a stricter policy, and to other credentials of the team', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const first = await create(key, own)
    const { db } = service.app
    await setPolicy(own, { maxConcurrentUnits: 0, allowedSizes: ['nano'] })
    await db.updateTable('teams').set({ plan: 'hobby' }).where('id', '=', own.teamId).execute()
    expect(told(await create(key, own))).toEqual(told(first))

    const other = await makeKey(service, own)
    expect(told(await create(key, { key: other.secret }))).toEqual(told(first))
    const cookie = await makeSession(service, own)
    const fromOwnPage = { origin: 'http://berth.test' }
    expect(told(await create(key, { cookie, headers: fromOwnPage }))).toEqual(told(first))
    expect(await unitsOf({ key: other.secret })).toHaveLength(1)

    await db.updateTable('credentials').set({ revoked_at: new Date() }).where('id', '=', own.keyId).execute()
    expect((await create(key, own)).status).toBe(401)
  })
})

describe('an Idempotency-Key stands for another call', () => {
  test('with another body, which is refused with 409 and makes nothing', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const first = await create(key, own)
    const bodies = [{ spec: { ...spec, name: 'other' } }, { spec, stack: 'web' }, { spec, waitTimeoutMs: 1 }]
    for (const body of bodies) {
      const refused = await create(key, { ...own, body })
      expect(refused).toMatchObject({
        status: 409,
        body: { error: { code: 'conflict', message: expect.stringContaining('choose a new key') } },
      })
      expect(isReplay(refused)).toBe(false)
    }
    expect(told(await create(key, own))).toEqual(told(first))
    expect(await unitsOf(own)).toHaveLength(1)
  })

  test('in another team', async () => {
    const key = newKey()
    const owners = [await makeTeam(service), await makeTeam(service)] as const
    const first = await create(key, owners[0])
    const second = await create(key, owners[1])
    expect(second.status).toBe(201)
    expect(isReplay(second)).toBe(false)
    expect(second.body.units[0]?.id).not.toBe(first.body.units[0]?.id)
    expect(second.body.outputs).not.toEqual(first.body.outputs)
  })

  test('after 24 hours, whether its row has been deleted or not', async () => {
    for (const loops of [true, false]) {
      const other = await startService({ loops })
      const own = await makeTeam(other)
      const ask = () =>
        other.call<RunResult>('POST', '/v1/units', {
          key: own.key,
          body: { spec },
          headers: { 'idempotency-key': 'daily' },
        })
      const first = await ask()
      other.clock.advance(24 * HOUR - MINUTE)
      expect(told(await ask())).toEqual(told(first))
      other.clock.advance(MINUTE)
      const kept = async () =>
        (await other.app.db.selectFrom('idempotency_keys').select('key').execute()).length
      if (loops) await expect.poll(kept).toBe(0)
      else expect(await kept()).toBe(1)
      const next = await ask()
      expect(next.status).toBe(201)
      expect(isReplay(next)).toBe(false)
      expect(next.body.units[0]?.id).not.toBe(first.body.units[0]?.id)
      expect(told(await ask())).toEqual(told(next))
      await other.close()
    }
  })
})

describe('a refused create leaves its Idempotency-Key free', () => {
  test('when policy, quota or validation refused it', async () => {
    const own = await makeTeam(service, { maxConcurrentUnits: 0 })
    const key = newKey()
    expect((await create(key, own)).status).toBe(402)
    expect((await create(key, { ...own, body: { spec: { ...spec, sleep: 30 } } })).status).toBe(400)
    await setPolicy(own, { maxConcurrentUnits: 1, allowedSizes: ['nano'] })
    expect((await create(key, own)).status).toBe(402)
    const allowed = await create(key, { ...own, body: { spec: { ...spec, size: 'nano' } } })
    expect(allowed.status).toBe(201)
    expect(isReplay(allowed)).toBe(false)
    expect(await unitsOf(own)).toHaveLength(1)
  })

  test('when its name was taken or the engine was down', async () => {
    const own = await makeTeam(service)
    const key = newKey()
    const sent = { ...own, body: { spec, stack: 'shop' } }
    const first = await create(newKey(), sent)
    expect(await create(key, sent)).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
    await service.call('DELETE', `/v1/units/${first.body.units[0]?.id}`, { key: own.key })
    service.engine.fail('capabilities', 'engine_away')
    expect((await create(key, sent)).status).toBe(503)
    expect((await create(key, sent)).status).toBe(201)
  })
})

describe('the Idempotency-Key header', () => {
  test.each(['', ' ', 'ä', 'a\tb', 'x'.repeat(256)])('is refused with the value %j', async (key) => {
    const answer = await create(key)
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: 'validation', details: [{ path: 'Idempotency-Key' }] } },
    })
  })

  test('is refused when it is sent twice', async () => {
    const body = JSON.stringify({ spec })
    const head = [
      'POST /v1/units HTTP/1.1',
      'host: berth.test',
      `authorization: Bearer ${team.key}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'idempotency-key: one',
      'idempotency-key: two',
      'connection: close',
    ]
    const answer = await sendRaw(service.port, `${head.join('\r\n')}\r\n\r\n${body}`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain('Idempotency-Key: must be sent once')
  })

  test.each(['x', '"a uuid, in quotes"', '!'.repeat(255), 'with inner  spaces; ~'])(
    'is accepted with the value %j',
    async (key) => {
      const own = await makeTeam(service)
      const first = await create(key, own)
      expect(first.status).toBe(201)
      expect(told(await create(key, own))).toEqual(told(first))
    },
  )

  test('is ignored by a call that creates nothing', async () => {
    const own = await makeTeam(service)
    const { body } = await create(newKey(), own)
    const path = `/v1/units/${body.units[0]?.id}/exec`
    for (const key of ['same', 'same', 'x'.repeat(300)]) {
      const headers = { 'idempotency-key': key }
      const answer = await service.call('POST', path, {
        key: own.key,
        body: { cmd: ['date', '+%N'] },
        headers,
      })
      expect(answer.status).toBe(200)
      expect(isReplay(answer)).toBe(false)
    }
  })
})

describe('a replayed create', () => {
  test('has an audit row with its key, its unit and no cost of the time between', async () => {
    const own = await makeTeam(service)
    const key = 'deploy --password=hunter2'
    const first = await create(key, own)
    service.clock.advance(HOUR)
    await create(key, own)
    const rows = await service.app.db
      .selectFrom('audit')
      .selectAll()
      .where('team_id', '=', own.teamId)
      .orderBy('id')
      .execute()
    const unitId = first.body.units[0]?.id
    const row = {
      action: 'unit.create',
      target: unitId,
      status: 201,
      input: { idempotencyKey: 'deploy --password=***', spec: { name: 'web' } },
    }
    expect(rows).toMatchObject([row, row])
    // Half a cent an hour, and not for the hour between.
    expect(rows[1]?.cost_delta_nanocents).toBeLessThan(10_000_000n)
  })

  test('counts towards the rate limit, and can be sent again after a refusal', async () => {
    const limited = await startService({ rates: { requests: 100, creations: 2, execs: 100 }, loops: false })
    const own = await makeTeam(limited)
    const headers = { 'idempotency-key': 'again' }
    const ask = () => limited.call('POST', '/v1/units', { key: own.key, body: { spec }, headers })
    const first = await ask()
    expect((await ask()).status).toBe(201)
    const refused = await ask()
    expect(refused.status).toBe(429)
    limited.clock.advance(Number(refused.headers.get('retry-after')) * SECOND)
    expect(told(await ask())).toEqual(told(first))
    await limited.close()
  })

  test('is stored encrypted, without a secret or a guessable digest', async () => {
    const own = await makeTeam(service)
    const canary = 'canary-7f3a9c'
    const env = { TOKEN: { secret: 'TOKEN', value: canary }, PASSWORD: { secret: 'PASSWORD' } }
    const first = await create('sealed', { ...own, body: { spec: { ...spec, env } } })
    const rows = await service.app.db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where('team_id', '=', own.teamId)
      .execute()
    expect(rows).toHaveLength(1)
    const generated = first.body.outputs.PASSWORD ?? ''
    expect(generated).not.toBe('')
    const [{ request: _request, kept, answer, ...plain } = expect.fail()] = rows
    for (const sealed of [kept, answer]) {
      for (const secret of [canary, generated, 'web']) expect(sealed?.includes(secret)).toBe(false)
    }
    // With a digest of a body that has a short password, a reader of the table could try passwords.
    const same = await create('sealed-too', { ...own, body: { spec: { ...spec, env } } })
    expect(same.status).toBe(201)
    const requests = await service.app.db
      .selectFrom('idempotency_keys')
      .select('request')
      .where('team_id', '=', own.teamId)
      .execute()
    expect(new Set(requests.map(({ request: sealed }) => sealed.toString('hex'))).size).toBe(2)
    expect(plain).toMatchObject({ team_id: own.teamId, route: 'POST /v1/units', key: 'sealed' })
    expect(service.logged.join('')).not.toContain(generated)
  })
})
