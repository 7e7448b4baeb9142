// The door for clients of E2B, with what such a client would not send: the control plane, frames and tokens.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { revokeCredential } from '../../src/store/credentials.ts'
import { addUnitSamples } from '../../src/store/unit-metrics.ts'
import { makeKey, makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let other: TestTeam
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  other = await makeTeam(service)
})
afterAll(async () => await service.close())

type Refused = { code: number | string; message: string }
type Access = { sandboxID: string; envdAccessToken: string }

const control = async <T = Refused>(
  method: string,
  path: string,
  body?: unknown,
  key = team.key,
): Promise<{ status: number; body: T }> => {
  const response = await service.fetch(method, `/e2b${path}`, {
    headers: { 'x-api-key': key },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as T }
}

const create = async (body: Record<string, unknown> = {}, key = team.key): Promise<Access> => {
  const answer = await control<Access>('POST', '/v2/sandboxes', { templateID: 'base', ...body }, key)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body
}

/** A call to what is inside of a sandbox, as bytes. */
const inside = async (
  { sandboxID, envdAccessToken }: Access,
  path: string,
  {
    body,
    headers = {},
    method = 'POST',
  }: { body?: Buffer | string; headers?: Record<string, string>; method?: string } = {},
) => {
  const response = await fetch(`${service.baseUrl}/e2b/sandbox${path}`, {
    method,
    headers: {
      'e2b-sandbox-id': sandboxID,
      'e2b-sandbox-port': '49983',
      'x-access-token': envdAccessToken,
      ...headers,
    },
    ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }),
  })
  return { status: response.status, text: await response.text() }
}

const json = { 'content-type': 'application/json', 'connect-protocol-version': '1' }
const stream = { 'content-type': 'application/connect+json', 'connect-protocol-version': '1' }
const LIST = '/process.Process/List'
const START = '/process.Process/Start'

function frame(text: string, length = Buffer.byteLength(text)): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.from(text)])
}

/** The error in the last frame of a stream. */
function errorIn(text: string): unknown {
  const at = text.indexOf('{"error"')
  return at < 0 ? null : (JSON.parse(text.slice(at)) as { error: Refused }).error.code
}

describe('the control plane', () => {
  it('makes a unit of the stack of sandboxes, which ends after five minutes', async () => {
    const { sandboxID } = await create()
    const { body } = await service.call<Record<string, unknown>>('GET', `/v1/units/unit_${sandboxID}`, {
      key: team.key,
    })
    expect(body).toMatchObject({
      image: 'berth.local/base:latest',
      sleep: 'never',
      timeToLive: '300s',
      atEnd: 'destroy',
    })
  })

  it('answers 401 without a key and with a wrong one', async () => {
    expect((await service.call('GET', '/e2b/v2/sandboxes')).status).toBe(401)
    expect((await control('GET', '/v2/sandboxes', undefined, 'e2b_0000')).status).toBe(401)
  })

  it('takes a key in its second spelling', async () => {
    const [, prefix = '', secret = ''] = /^berth_live_([0-9a-f]+)_(.+)$/.exec(team.key) ?? []
    const spelled = `e2b_${prefix}${Buffer.from(secret, 'base64url').toString('hex')}`
    expect((await control('GET', '/v2/sandboxes', undefined, spelled)).status).toBe(200)
  })

  it.each([
    ['GET', '', 404],
    ['DELETE', '', 404],
    ['POST', '/pause', 404],
    ['POST', '/connect', 404],
    ['POST', '/timeout', 404],
    ['POST', '/fork', 404],
    ['GET', '/metrics', 404],
    ['GET', '/logs', 404],
    ['POST', '/snapshots', 404],
    ['PUT', '/network', 404],
  ])('answers 404 for %s of another team’s sandbox%s', async (method, path) => {
    const { sandboxID } = await create({}, other.key)
    const body = method === 'GET' || method === 'DELETE' ? undefined : { timeout: 10 }
    const answer = await control(method, `/sandboxes/${sandboxID}${path}`, body)
    expect(answer.status).toBe(404)
    expect(answer.body).toEqual({ code: 404, message: expect.stringContaining('There is no sandbox') })
  })

  it.each([
    [
      { denyOut: ['0.0.0.0/0'], allowOut: ['1.1.1.1', '8.8.8.0/24', 'example.com'] },
      { mode: 'listed', allow: ['1.1.1.1/32', '8.8.8.0/24', 'example.com'] },
    ],
    [{ denyOut: ['8.8.8.8'] }, { mode: 'open', deny: ['8.8.8.8/32'] }],
    // What is allowed goes before what is denied.
    [
      { denyOut: ['8.8.8.0/29', '10.0.0.0/8'], allowOut: ['8.8.8.2'] },
      { mode: 'open', deny: ['8.8.8.0/31', '8.8.8.3/32', '8.8.8.4/30', '10.0.0.0/8'] },
    ],
  ])('makes rules of egress of %j', async (network, rules) => {
    const { sandboxID } = await create({ network })
    const path = `/v1/units/unit_${sandboxID}`
    const ruled = async () => (await service.call('GET', path, { key: team.key })).body
    expect(await ruled()).toMatchObject({ egress: { ...rules, siblings: 'none' } })
    await control('PUT', `/sandboxes/${sandboxID}/network`, { denyOut: ['9.9.9.9'] })
    const { body: shown } = await control('GET', `/sandboxes/${sandboxID}`)
    expect(shown).toMatchObject({ network: { denyOut: ['9.9.9.9'] } })
    expect(await ruled()).toMatchObject({ egress: { mode: 'open', siblings: 'none' } })
  })

  it.each([
    [{ templateID: '' }],
    [{ timeout: -1 }],
    [{ timeout: 1.5 }],
    [{ timeout: 99_999_999 }],
    [{ network: { maskRequestHost: 'no host' } }],
    [{ metadata: { list: ['a'] } }],
    [{ metadata: { templateStart: '{}' } }],
    [{ metadata: { volumeName: 'x' } }],
    [{ envVars: { 'not a name': 'x' } }],
    [{ mcp: { server: {} } }],
    [{ volumeMounts: [{ name: 'a', path: '/a' }] }],
    [{ network: { denyOut: ['example.com'] } }],
    [{ network: { denyOut: ['0.0.0.0/0'], allowOut: ['10.0.0.1'] } }],
    [{ network: { allowOut: ['example.com'] } }],
    [{ network: { rules: { 'example.com': [{}] } } }],
    [{ iam: { tokens: {} } }],
  ])('refuses a create with %j', async (wrong) => {
    const answer = await control('POST', '/v2/sandboxes', { templateID: 'base', ...wrong })
    expect(answer).toMatchObject({ status: 400, body: { code: 400, message: expect.any(String) } })
  })

  it('stops a sandbox at its end that is to be paused without memory', async () => {
    const { sandboxID } = await create({ autoPause: true, autoPauseMemory: false })
    const { body } = await service.call<{ atEnd: string }>('GET', `/v1/units/unit_${sandboxID}`, {
      key: team.key,
    })
    expect(body.atEnd).toBe('stop')
    const shown = await control<object>('GET', `/sandboxes/${sandboxID}`)
    expect(shown.body).toMatchObject({ lifecycle: { onTimeout: 'pause' } })
  })

  it('shows how the ports of a sandbox are visited, and copies that to a fork', async () => {
    type Shown = { trafficAccessToken: string | null; network: object; lifecycle: object }
    const made = await control<Access & Shown>('POST', '/v2/sandboxes', {
      templateID: 'base',
      autoPause: true,
      autoResume: { enabled: true },
      network: { allowPublicTraffic: false, maskRequestHost: 'localhost:${PORT}' },
    })
    const { sandboxID, trafficAccessToken } = made.body
    expect(trafficAccessToken).toMatch(/^[0-9a-f]{64}$/)
    const shown = await control<Shown>('GET', `/sandboxes/${sandboxID}`)
    expect(shown.body).toMatchObject({
      network: { allowPublicTraffic: false, maskRequestHost: 'localhost:${PORT}' },
      lifecycle: { onTimeout: 'pause', autoResume: true },
    })
    const connected = await control<Shown>('POST', `/sandboxes/${sandboxID}/connect`, {})
    expect(connected.body.trafficAccessToken).toBe(trafficAccessToken)
    const forked = await control<{ sandbox: Access & Shown }[]>('POST', `/sandboxes/${sandboxID}/fork`, {})
    const copy = forked.body[0]?.sandbox
    expect(copy?.trafficAccessToken).toMatch(/^[0-9a-f]{64}$/)
    expect(copy?.trafficAccessToken).not.toBe(trafficAccessToken)
  })

  it('resumes a sandbox by a call to what is inside where that was asked for', async () => {
    const sandbox = await create({ autoPause: true, autoResume: { enabled: true } })
    await control('POST', `/sandboxes/${sandbox.sandboxID}/pause`, {})
    expect((await inside(sandbox, '/health', { method: 'GET' })).status).toBe(502)
    expect((await inside(sandbox, LIST, { headers: json, body: '{}' })).status).toBe(200)
    expect((await inside(sandbox, '/health', { method: 'GET' })).status).toBe(204)
  })

  it('adds an environment to that of a snapshot', async () => {
    const { sandboxID } = await create({ envVars: { KEPT: 'kept', CHANGED: 'before' } })
    const snapshot = await control<{ snapshotID: string }>('POST', `/sandboxes/${sandboxID}/snapshots`, {})
    const copy = await create({ templateID: snapshot.body.snapshotID, envVars: { CHANGED: 'after' } })
    const { body } = await service.call<{ env: object }>('GET', `/v1/units/unit_${copy.sandboxID}`, {
      key: team.key,
    })
    expect(body.env).toEqual({ KEPT: 'kept', CHANGED: 'after' })
  })

  it('makes, lists and deletes snapshots of its own team alone', async () => {
    const { sandboxID } = await create()
    type Snapshot = { snapshotID: string; names: string[] }
    const made = await control<Snapshot>('POST', `/sandboxes/${sandboxID}/snapshots`, {
      name: 'team/kept:v1',
    })
    expect(made).toMatchObject({ status: 201, body: { names: ['kept:v1'] } })
    const { snapshotID } = made.body
    const listed = await control<Snapshot[]>('GET', `/snapshots?sandboxID=${sandboxID}&name=kept`)
    expect(listed.body).toEqual([made.body])
    expect((await control('GET', '/snapshots', undefined, other.key)).body).toEqual([])
    const ofOther = { templateID: snapshotID, timeout: 10 }
    expect((await control('POST', '/v2/sandboxes', ofOther, other.key)).status).toBe(404)
    for (const reference of [snapshotID, 'kept%3Av1', 'kept', 'no%20name', '%zz'])
      expect((await control('DELETE', `/templates/${reference}`, undefined, other.key)).status).toBe(404)
    expect((await control('GET', `/sandboxes/${snapshotID}`)).status).toBe(404)
    const copy = await create({ templateID: 'kept:v1', metadata: { a: 'b' } })
    const shown = { templateID: 'kept', metadata: { a: 'b' } }
    expect((await control('GET', `/sandboxes/${copy.sandboxID}`)).body).toMatchObject(shown)
    expect((await control('GET', '/v2/sandboxes?template=kept')).body).toEqual([
      expect.objectContaining({ sandboxID: copy.sandboxID }),
    ])
    const wrong = { templateID: snapshotID, envVars: { 'no name': 'b' } }
    expect((await control('POST', '/v2/sandboxes', wrong)).status).toBe(400)
    const named = { name: 'no name!' }
    expect((await control('POST', `/sandboxes/${sandboxID}/snapshots`, named)).status).toBe(400)
    expect((await control('DELETE', `/templates/${snapshotID}`)).status).toBe(204)
    expect((await control('DELETE', '/templates/kept%3Av1')).status).toBe(404)
  })

  it('shows what a sandbox used by the minute, and now, in the time that is asked for', async () => {
    const { sandboxID } = await create()
    const now = Date.now()
    const none = { generation: 0, receivedBytes: 0, sentBytes: 0 }
    const sample = { ...none, unitId: `unit_${sandboxID}`, cpuMs: 15_000, memoryBytes: 1000 }
    await addUnitSamples(service.app.db, { at: new Date(now - 600_000), samples: [sample] })
    const usedFrom = async (start: number, end: number) => {
      const query = `start=${Math.round(start / 1000)}&end=${Math.round(end / 1000)}`
      return (await control<object[]>('GET', `/sandboxes/${sandboxID}/metrics?${query}`)).body
    }
    const minute = { memUsed: 1000, cpuUsedPct: 50, cpuCount: 1, diskTotal: expect.any(Number) }
    expect(await usedFrom(0, now)).toEqual([expect.objectContaining(minute), expect.any(Object)])
    expect(await usedFrom(now - 900_000, now - 300_000)).toEqual([expect.objectContaining(minute)])
    expect(await usedFrom(now - 300_000, now)).toEqual([expect.not.objectContaining(minute)])
  })

  it('refuses a page, a state and an order that do not exist', async () => {
    for (const query of ['limit=0', 'state=dead', 'order=up', 'nextToken=x', 'metadata=%25%25'])
      expect((await control('GET', `/v2/sandboxes?${query}`)).status, query).toBe(400)
  })

  it('answers 404 for a call that it does not know, and writes it down', async () => {
    expect(await control('GET', '/nothing/at/all')).toMatchObject({ status: 404, body: { code: 404 } })
    const { body } = await service.call<{ events: { via: string; status: number }[] }>(
      'GET',
      '/v1/audit?action=e2b.call',
      { key: team.key },
    )
    expect(body.events[0]).toMatchObject({ via: 'e2b', status: 404 })
  })

  it('answers 429 with the time to wait beyond the rate of the key', async () => {
    const tight = await startService({ rates: { requests: 3, creations: 3, execs: 3 } })
    try {
      const poor = await makeTeam(tight)
      const statuses: number[] = []
      let last: Headers | null = null
      for (let call = 0; call < 4; call += 1) {
        const answer = await tight.call('GET', '/e2b/v2/sandboxes', { headers: { 'x-api-key': poor.key } })
        statuses.push(answer.status)
        last = answer.headers
      }
      expect(statuses).toEqual([200, 200, 200, 429])
      expect(Number(last?.get('retry-after'))).toBeGreaterThan(0)
    } finally {
      await tight.close()
    }
  })
})

describe('a token of a sandbox', () => {
  it('is worth nothing for another sandbox, for one of another team, and at the API', async () => {
    const [mine, second, theirs] = [await create(), await create(), await create({}, other.key)]
    for (const wrong of [
      { ...second, envdAccessToken: mine.envdAccessToken },
      { ...theirs, envdAccessToken: mine.envdAccessToken },
      { ...mine, envdAccessToken: '' },
      { ...mine, envdAccessToken: `${mine.envdAccessToken.slice(0, -1)}x` },
    ]) {
      const answer = await inside(wrong, '/health', { method: 'GET' })
      expect(answer.status).toBe(401)
      expect(answer.text).not.toContain(wrong.sandboxID)
    }
    const asKey = await service.call('GET', '/v1/units', { key: mine.envdAccessToken })
    expect(asKey.status).toBe(401)
  })

  it('ends with its key', async () => {
    const key = await makeKey(service, team)
    const sandbox = await create({}, key.secret)
    expect((await inside(sandbox, '/health', { method: 'GET' })).status).toBe(204)
    await revokeCredential(service.app.db, { teamId: team.teamId, id: key.id, at: service.clock.now() })
    expect((await inside(sandbox, '/health', { method: 'GET' })).status).toBe(401)
  })

  it('does nothing for a sandbox that is gone or paused, which clients know by 502', async () => {
    const sandbox = await create()
    await control('POST', `/sandboxes/${sandbox.sandboxID}/pause`, {})
    const paused = await inside(sandbox, '/health', { method: 'GET' })
    expect([paused.status, JSON.parse(paused.text)]).toEqual([
      502,
      { sandboxId: sandbox.sandboxID, message: expect.stringMatching(/was not found.*paused/), code: 502 },
    ])
    expect((await control('POST', `/sandboxes/${sandbox.sandboxID}/pause`, {})).status).toBe(409)
    await control('DELETE', `/sandboxes/${sandbox.sandboxID}`)
    const gone = await inside(sandbox, START, { headers: stream, body: frame('{"process":{"cmd":"true"}}') })
    expect([gone.status, errorIn(gone.text)]).toEqual([200, 'unavailable'])
    expect((await control('DELETE', `/sandboxes/${sandbox.sandboxID}`)).status).toBe(404)
  })
})

describe('a call to what is inside of a sandbox', () => {
  let sandbox: Access
  beforeAll(async () => void (sandbox = await create()))

  it('without a sandbox, with a malformed one and with a port that none has is refused', async () => {
    const { envdAccessToken } = sandbox
    const none = await fetch(`${service.baseUrl}/e2b/sandbox/health`)
    expect(none.status).toBe(400)
    expect((await inside({ sandboxID: '../x', envdAccessToken }, '/health', { method: 'GET' })).status).toBe(
      502,
    )
    for (const port of ['0', '65536', '-1', 'x'])
      expect(
        (await inside(sandbox, '/health', { method: 'GET', headers: { 'e2b-sandbox-port': port } })).status,
      ).toBe(400)
  })

  it('to an unknown method or path is 404', async () => {
    expect((await inside(sandbox, '/process.Process/Explode', { headers: json, body: '{}' })).status).toBe(
      404,
    )
    expect((await inside(sandbox, '/nothing', { method: 'GET' })).status).toBe(404)
  })

  it('with a file that has no name is refused', async () => {
    const body =
      '--x\r\ncontent-disposition: form-data; name="file"; filename=""\r\ncontent-type: a/b\r\n\r\nx\r\n--x--\r\n'
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    expect((await inside(sandbox, '/files', { headers, body })).status).toBe(400)
  })

  it('lists no processes where none was started, also in the binary form', async () => {
    expect(await inside(sandbox, LIST, { headers: json, body: '{}' })).toEqual({ status: 200, text: '{}' })
    const binary = { 'content-type': 'application/proto', 'connect-protocol-version': '1' }
    expect(await inside(sandbox, LIST, { headers: binary, body: '' })).toEqual({ status: 200, text: '' })
  })

  it.each([
    ['that is no JSON', '{"process":'],
    ['with a number where text belongs', '{"process":{"cmd":7}}'],
    ['without a command', '{"process":{}}'],
    ['with a terminal without a size', '{"process":{"cmd":"sh"},"pty":{}}'],
    ['with a terminal of no columns', '{"process":{"cmd":"sh"},"pty":{"size":{"cols":0,"rows":1}}}'],
    ['with a variable that has no name', '{"process":{"cmd":"sh","envs":{"":"x"}}}'],
  ])('with a message %s is an invalid argument', async (_what, text) => {
    const answer = await inside(sandbox, START, { headers: stream, body: frame(text) })
    expect([answer.status, errorIn(answer.text)]).toEqual([200, 'invalid_argument'])
  })

  it('with a frame that is cut short, or says that it has four gigabytes, is refused at once', async () => {
    const cut = await inside(sandbox, START, {
      headers: stream,
      body: frame('{"process":{}}').subarray(0, 9),
    })
    expect([cut.status, errorIn(cut.text)]).toEqual([200, 'invalid_argument'])
    const long = await inside(sandbox, START, { headers: stream, body: frame('{}', 0xffff_ffff) })
    expect([long.status, errorIn(long.text)]).toEqual([200, expect.stringMatching(/exhausted|invalid/)])
  })

  it('about a process that is not there is not found', async () => {
    const selected = '{"process":{"pid":4711},"signal":"SIGNAL_SIGKILL"}'
    const answer = await inside(sandbox, '/process.Process/SendSignal', { headers: json, body: selected })
    expect([answer.status, (JSON.parse(answer.text) as Refused).code]).toEqual([404, 'not_found'])
  })

  it('with a signed URL for another file, or of a time that is over, is 401', async () => {
    const sign = async (path: string, expiry: number) => {
      const text = `${path}:read::${sandbox.envdAccessToken}:${expiry}`
      const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
      return `v1_${Buffer.from(digest).toString('base64').replace(/=+$/, '')}`
    }
    const read = async (path: string, signature: string, expiry: number) => {
      const query = new URLSearchParams({ path, signature, signature_expiration: String(expiry) })
      return await inside({ ...sandbox, envdAccessToken: '' }, `/files?${query.toString()}`, {
        method: 'GET',
      })
    }
    const later = Math.floor(service.clock.now().getTime() / 1000) + 60
    const signature = await sign('/etc/hostname', later)
    const refused = (message: string) => ({ status: 401, text: JSON.stringify({ code: 401, message }) })
    expect(await read('/etc/passwd', signature, later)).toEqual(refused('invalid signature'))
    expect(await read('/etc/hostname', signature, later + 1)).toEqual(refused('invalid signature'))
    const early = later - 120
    const expired = await read('/etc/hostname', await sign('/etc/hostname', early), early)
    expect(expired).toEqual(refused('signature is already expired'))
  })

  it('keeps what is said of a file with it until it is written without', async () => {
    type Stat = { entry: { metadata?: Record<string, string> } }
    const stat = async (path: string) => {
      const answer = await inside(sandbox, '/filesystem.Filesystem/Stat', {
        headers: json,
        body: JSON.stringify({ path }),
      })
      return (JSON.parse(answer.text) as Stat).entry.metadata
    }
    const write = async (headers: Record<string, string>) => {
      const answer = await inside(sandbox, '/files?path=/noted/a', {
        headers: { 'content-type': 'application/octet-stream', ...headers },
        body: 'x',
      })
      return { ...answer, said: JSON.parse(answer.text) as unknown }
    }
    const call = async (method: string, body: object) =>
      await inside(sandbox, `/filesystem.Filesystem/${method}`, { headers: json, body: JSON.stringify(body) })
    expect((await write({ 'X-Metadata-Author': 'Ann' })).said).toMatchObject([
      { metadata: { author: 'Ann' } },
    ])
    expect(await stat('/noted/a')).toEqual({ author: 'Ann' })
    await call('Move', { source: '/noted', destination: '/moved' })
    expect(await stat('/moved/a')).toEqual({ author: 'Ann' })
    await call('Remove', { path: '/moved' })
    await write({})
    await call('Move', { source: '/noted', destination: '/moved' })
    expect(await stat('/moved/a')).toBeUndefined()
    expect((await write({ 'X-Metadata-Author': 'é' })).status).toBe(400)
  })

  it('reads what it uses and its environment, without secrets', async () => {
    const made = await create({ envVars: { COLOUR: 'blue' } })
    const read = async (path: string) =>
      JSON.parse((await inside(made, path, { method: 'GET' })).text) as object
    expect(await read('/envs')).toEqual({ COLOUR: 'blue' })
    expect(await read('/metrics')).toMatchObject({ mem_total: expect.any(Number), ts: expect.any(Number) })
    const many = await control<object>(
      'GET',
      `/sandboxes/metrics?sandbox_ids=${made.sandboxID},${'0'.repeat(32)}`,
    )
    expect(many.body).toEqual({ sandboxes: { [made.sandboxID]: expect.objectContaining({ cpuCount: 1 }) } })
  })

  it('with a file as a plain field is written to the path of the query', async () => {
    const body = '--x\r\ncontent-disposition: form-data; name="file"\r\n\r\nplain\r\n--x--\r\n'
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    expect((await inside(sandbox, '/files?path=/plain', { headers, body })).status).toBe(200)
    expect((await inside(sandbox, '/files?path=/plain', { method: 'GET' })).text).toBe('plain')
    expect((await inside(sandbox, '/files', { headers, body })).status).toBe(400)
  })

  it('with a file for which there is no room is refused as one of a full disk', async () => {
    service.engine.fail('receiveFile', 'disk_full')
    const headers = { 'content-type': 'application/octet-stream' }
    const answer = await inside(sandbox, '/files?path=large&username=root', { headers, body: 'x' })
    expect(answer).toMatchObject({ status: 507, text: expect.stringContaining('disk is full') })
  })

  it('with files in no form, in a broken one, or without any is refused', async () => {
    const form = 'multipart/form-data; boundary=x'
    for (const [type, body] of [
      ['text/plain', 'x'],
      ['multipart/form-data', 'x'],
      [form, '--x--\r\n'],
      [form, '--x\r\ncontent-disposition: form-data; name="file"; filename="/a"\r\n\r\ncut'],
    ] as const) {
      const answer = await inside(sandbox, '/files', { headers: { 'content-type': type }, body })
      expect([400, 415], `${type} ${answer.text}`).toContain(answer.status)
    }
  })
})
