// Everything that can be wrong with a request at /mcp: each gets a clear error, none is a fault of the server, and
// each has its audit row.

import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { makeKey, makeSession, makeTeam, type TestTeam } from '../support/make.ts'
import { sendRaw } from '../support/raw-http.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
})
afterAll(async () => await service.close())
beforeEach(async () => {
  team = await makeTeam(service)
})

type Sent = { body?: unknown; headers?: Record<string, string>; method?: string; path?: string; key?: string }

const accepts = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
let count = 0

/** Sends one request, and returns its answer with the audit rows it left. */
async function send({ body, headers = {}, method = 'POST', path = '/mcp', key = team.key }: Sent) {
  const requestId = `frame-${count++}`
  const response = await service.fetch(method, path, {
    key,
    headers: { ...accepts, 'x-request-id': requestId, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  const rows = await service.app.db
    .selectFrom('audit')
    .select(['action', 'status', 'via', 'input', 'error_code'])
    .where('request_id', '=', requestId)
    .orderBy('id')
    .execute()
  return { status: response.status, headers: response.headers, text, answers: answersIn(text), rows }
}

type RpcAnswer = { id?: unknown; error?: { code: number; message: string }; result?: Record<string, unknown> }

function answersIn(text: string): RpcAnswer[] {
  const bodies =
    text.startsWith('{') || text.startsWith('[') ? [text] : (text.match(/(?<=^data: ).+$/gm) ?? [])
  return bodies.flatMap((body) => JSON.parse(body) as RpcAnswer | RpcAnswer[])
}

const call = (name: unknown, args: unknown = {}, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})

/** The same in the newest revision, with the matching headers. */
const modern = (method: string, params: Record<string, unknown> = {}, id: unknown = 1) => ({
  body: {
    jsonrpc: '2.0',
    id,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
        'io.modelcontextprotocol/clientInfo': { name: 'Zed', version: '1.2' },
      },
    },
  },
  headers: {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof params['name'] === 'string' ? { 'mcp-name': params['name'] } : {}),
  },
})

describe('an unauthenticated request to /mcp', () => {
  test.each(['GET', 'POST', 'DELETE'])(
    'by %s is told where to sign in, and leaves no audit row',
    async (method) => {
      const sent = { method, ...(method === 'POST' ? { body: call('list_units') } : {}) }
      const none = await service.fetch(method, '/mcp', { headers: accepts, ...sent })
      expect(none.status).toBe(401)
      expect(none.headers.get('www-authenticate')).toBe(
        'Bearer resource_metadata="http://berth.test/.well-known/oauth-protected-resource/mcp", scope="units"',
      )
      const wrong = await send({ ...sent, key: `${team.key}x` })
      expect(wrong).toMatchObject({ status: 401, rows: [] })
      expect(wrong.headers.get('www-authenticate')).toContain('error="invalid_token"')
    },
  )

  test('with only a cookie is refused with 401', async () => {
    const cookie = await makeSession(service, team)
    const headers = { ...accepts, origin: service.baseUrl }
    const answer = await service.fetch('POST', '/mcp', { cookie, headers, body: call('list_units') })
    expect(answer.status).toBe(401)
  })

  test('from a page of another site or for a foreign host is refused', async () => {
    expect(
      await send({ body: call('list_units'), headers: { origin: 'https://evil.example' } }),
    ).toMatchObject({
      status: 403,
      rows: [],
    })
    expect((await send({ body: call('list_units'), headers: { origin: 'null' } })).status).toBe(403)
    expect((await send({ body: call('list_units'), headers: { origin: service.baseUrl } })).status).toBe(200)
    const raw = await sendRaw(
      service.port,
      `POST /mcp HTTP/1.1\r\nhost: evil.example\r\nauthorization: Bearer ${team.key}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    )
    expect(raw).toMatch(/^HTTP\/1\.1 421 /)
  })
})

describe('a request to /mcp that is no message', () => {
  const frames: [title: string, status: number, code: number, sent: Sent][] = [
    ['no body', 400, -32_700, { body: '' }],
    ['half of a body', 400, -32_700, { body: '{"jsonrpc":' }],
    ['a duplicate key', 400, -32_700, { body: '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}' }],
    ['invalid UTF-8', 400, -32_700, { body: Buffer.from([0x7b, 0xff, 0x7d]) }],
    ['nested a thousand deep', 400, -32_700, { body: '['.repeat(1000) + ']'.repeat(1000) }],
    ['text', 415, -32_000, { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ['compressed', 415, -32_000, { body: 'x', headers: { 'content-encoding': 'gzip' } }],
    ['10 MB', 413, -32_000, { body: `"${'x'.repeat(10_000_000)}"` }],
    ['an empty batch', 400, -32_600, { body: [] }],
    ['a batch of eleven', 400, -32_600, { body: Array.from({ length: 11 }, () => call('list_units')) }],
    ['initialize in a batch', 400, -32_600, { body: [{ jsonrpc: '2.0', id: 1, method: 'initialize' }] }],
    ['a batch of the newest revision', 400, -32_600, { body: [modern('tools/list').body] }],
    ['GET', 405, -32_000, { method: 'GET' }],
    ['DELETE', 405, -32_000, { method: 'DELETE' }],
  ]
  test.each(frames)('(%s) returns %i', async (_title, status, code, sent) => {
    const answered = await send(sent)
    expect(answered).toMatchObject({ status, answers: [{ id: null, error: { code } }] })
    expect(answered.rows).toMatchObject([{ action: 'mcp.protocol', status, via: 'mcp' }])
    if (status === 405) expect(answered.headers.get('allow')).toBe('POST')
  })
})

describe('a message to /mcp with a wrong method, tool or header', () => {
  const noTool = modern('tools/call', { name: 'nonesuch' })
  const frames: [title: string, status: number, code: number, sent: Sent][] = [
    ['a number', 400, -32_600, { body: 7 }],
    ['null', 400, -32_600, { body: null }],
    ['no version', 400, -32_600, { body: { id: 1, method: 'ping' } }],
    ['an unknown method of 2025', 200, -32_601, { body: { jsonrpc: '2.0', id: 1, method: 'nonesuch' } }],
    ['an unknown method of 2026', 404, -32_601, modern('nonesuch')],
    ['an unknown tool of 2025', 200, -32_602, { body: call('nonesuch') }],
    ['an unknown tool of 2026', 200, -32_602, noTool],
    [
      'a tool without a name',
      200,
      -32_602,
      { body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} } },
    ],
    ['a tool called by a number', 200, -32_602, { body: call(7) }],
    ['arguments that are a list', 200, -32_602, { body: call('list_units', [1]) }],
    [
      'a cursor',
      200,
      -32_602,
      { body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { cursor: 'x' } } },
    ],
    [
      'a tool name that differs from the header',
      400,
      -32_020,
      { ...noTool, headers: { ...noTool.headers, 'mcp-name': 'list_units' } },
    ],
    [
      'a method that differs from the header',
      400,
      -32_020,
      { ...modern('tools/list'), headers: { ...modern('tools/list').headers, 'mcp-method': 'tools/call' } },
    ],
    [
      'a revision that differs from the header',
      400,
      -32_020,
      {
        ...modern('tools/list'),
        headers: { ...modern('tools/list').headers, 'mcp-protocol-version': '2025-06-18' },
      },
    ],
    [
      'an Accept header without JSON',
      406,
      -32_000,
      { body: call('list_units'), headers: { accept: 'text/html' } },
    ],
  ]
  test.each(frames)('(%s) returns %i with %i', async (_title, status, code, sent) => {
    const answered = await send(sent)
    expect(answered).toMatchObject({ status, answers: [{ error: { code, message: expect.any(String) } }] })
    expect(answered.rows).toMatchObject([{ action: 'mcp.protocol', via: 'mcp' }])
    expect(answered.rows[0]?.status).toBe(status === 200 ? 400 : status)
  })

  test('(an unknown revision) is told the supported ones', async () => {
    const { body, headers } = modern('tools/list')
    const unknown = {
      'io.modelcontextprotocol/protocolVersion': '2099-01-01',
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const answered = await send({
      body: { ...body, params: { _meta: unknown } },
      headers: { ...headers, 'mcp-protocol-version': '2099-01-01' },
    })
    expect(answered).toMatchObject({ status: 400, answers: [{ error: { code: -32_022 } }] })
    expect(answered.text).toContain('2026-07-28')
  })
})

describe('a create whose request to /mcp is refused', () => {
  const args = { name: 'never', image: 'node:22' }
  const made = modern('tools/call', { name: 'create_unit', arguments: args })
  const without = (name: string) =>
    Object.fromEntries(Object.entries(made.headers).filter(([header]) => header !== name))
  const frames: [title: string, status: number, sent: Sent][] = [
    [
      'the header names another tool',
      400,
      { ...made, headers: { ...made.headers, 'mcp-name': 'list_units' } },
    ],
    ['the header names another method', 400, { ...made, headers: { ...made.headers, 'mcp-method': 'ping' } }],
    ['no header names the tool', 400, { ...made, headers: without('mcp-name') }],
    ['no header names the method', 400, { ...made, headers: without('mcp-method') }],
    [
      'the header has another revision',
      400,
      { ...made, headers: { ...made.headers, 'mcp-protocol-version': '2025-06-18' } },
    ],
    ['it is text', 415, { ...made, headers: { ...made.headers, 'content-type': 'text/plain' } }],
    [
      'it has 10 MB',
      413,
      { body: call('create_unit', { ...args, files: { '/a': 'x'.repeat(10_000_000) } }) },
    ],
    [
      'it is in a batch of eleven',
      400,
      { body: Array.from({ length: 11 }, () => call('create_unit', args)) },
    ],
    ['it is a list within a batch', 400, { body: [[call('create_unit', args)]] }],
  ]
  test.each(frames)('because %s makes nothing, and has one audit row', async (_title, status, sent) => {
    const answered = await send(sent)
    expect(answered.rows).toMatchObject([{ action: 'mcp.protocol', via: 'mcp' }])
    expect(answered.answers).toMatchObject([{ error: { message: expect.any(String) } }])
    // A message within a batch is refused by itself, and the batch is answered.
    expect(answered.status).toBe(Array.isArray(sent.body) && sent.body.length === 1 ? 200 : status)
    expect((await send({ body: call('list_units') })).answers).toMatchObject([
      { result: { structuredContent: { units: [] } } },
    ])
  })
})

describe('wrong arguments of a tool', () => {
  const wrong: [name: string, args: unknown, told: string][] = [
    ['create_unit', {}, 'name'],
    ['create_unit', { name: 'A B', image: 'node:22' }, 'name: must be 1 to 32 lower-case letters'],
    [
      'create_unit',
      { name: 'a', image: 'node:22', colour: 'red' },
      'colour: unknown field; the fields here are name, image',
    ],
    ['create_unit', { name: 'a', image: 'node:22', ports: [0] }, 'ports.0: must be a port from 1 to 65535'],
    ['create_unit', { name: 'a', image: 'node:22', sleep: 'soon' }, 'sleep: must be "never", or a number'],
    ['create_unit', { name: 'a', image: 'node:22', size: 'huge' }, 'size'],
    ['create_unit', { name: 'a', image: 'node:22', env: { A: 1 } }, 'env.A'],
    ['run_command', { unit: 'a' }, 'command: is required, such as'],
    ['run_command', { unit: 'a', command: 'ls', argv: ['ls'] }, 'not both'],
    ['run_command', { unit: 7, command: 'ls' }, 'unit'],
    ['run_command', { unit: 'a', command: 'ls', timeout_seconds: 1e9 }, 'timeout_seconds'],
    ['write_file', { unit: 'a', path: '/a' }, 'text: give the content as text'],
    ['fork', {}, 'unit: say which unit to copy'],
    ['list_units', { cursor: 'tampered' }, 'cursor'],
  ]
  test.each(wrong)('are named in the error: %s with %j', async (name, args, told) => {
    const answered = await send({ body: call(name, args) })
    expect(answered.status).toBe(200)
    const [answer] = answered.answers
    expect(answer?.result).toMatchObject({ isError: true })
    expect(answer?.result?.['content']).toMatchObject([{ text: expect.stringContaining(told) }])
    expect(answered.rows).toMatchObject([{ status: 400, error_code: 'validation', via: 'mcp' }])
    expect(answered.rows[0]?.action).not.toBe('mcp.protocol')
  })
})

describe('the audit log of /mcp', () => {
  test('has one row for each message of a session, with the name of the client', async () => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'My Own Agent', version: '3' },
    }
    const begun = await send({ body: { jsonrpc: '2.0', id: 0, method: 'initialize', params } })
    const session = begun.headers.get('mcp-session-id') ?? ''
    expect(session).toMatch(/^[\x21-\x7e]+$/)
    const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' }
    const initialized = await send({ body: { jsonrpc: '2.0', method: 'notifications/initialized' }, headers })
    expect(initialized).toMatchObject({ status: 202, text: '' })
    const called = await send({ body: call('list_units'), headers })
    expect([begun, initialized, called].map(({ rows }) => rows.map(({ action }) => action))).toEqual([
      ['mcp.protocol'],
      ['mcp.protocol'],
      ['unit.list'],
    ])
    const names = await service.app.db
      .selectFrom('audit')
      .select(['agent_name', 'agent_version'])
      .where('team_id', '=', team.teamId)
      .where('action', '=', 'unit.list')
      .execute()
    expect(names).toEqual([{ agent_name: 'my-own-agent', agent_version: '3' }])
  })

  test('has one row for each message of a batch, which is answered together', async () => {
    const answered = await send({
      body: [
        call('list_units', {}, 'a'),
        { jsonrpc: '2.0', id: 'b', method: 'tools/list' },
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        call('nonesuch', {}, 'c'),
      ],
    })
    expect(answered.status).toBe(200)
    expect(answered.answers).toMatchObject([
      { id: 'a', result: { structuredContent: { units: [] } } },
      { id: 'b', result: { tools: expect.any(Array) } },
      { id: 'c', error: { code: -32_602 } },
    ])
    expect(answered.rows.map(({ action, status }) => [action, status])).toEqual([
      ['unit.list', 200],
      ['mcp.protocol', 200],
      ['mcp.protocol', 200],
      ['mcp.protocol', 400],
    ])
  })

  test('does not contain a secret that was sent as the name of a method', async () => {
    const secret = (await makeKey(service, team)).secret
    const { rows } = await send({ body: { jsonrpc: '2.0', id: 1, method: secret } })
    expect(JSON.stringify(rows)).not.toContain(secret)
  })
})

test('the list of tools is the same for every caller, and states how long it is valid', async () => {
  const other = await makeTeam(service)
  const [mine, theirs] = [
    await send(modern('tools/list')),
    await send({ ...modern('tools/list'), key: other.key }),
  ]
  expect(mine.answers[0]?.result).toMatchObject({ ttlMs: 300_000, cacheScope: 'public' })
  expect(mine.text).toBe(theirs.text)
})

test('messages count towards the rate limits, for tools and all others', async () => {
  const bounded = await startService({ rates: { requests: 3, creations: 1, execs: 1 } })
  try {
    const { key } = await makeTeam(bounded)
    const post = async (body: unknown) => {
      const response = await bounded.fetch('POST', '/mcp', { key, headers: accepts, body })
      return {
        status: response.status,
        retryAfter: response.headers.get('retry-after'),
        text: await response.text(),
      }
    }
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    for (let sent = 0; sent < 3; sent++) expect((await post(list)).status).toBe(200)
    expect(await post(list)).toMatchObject({ status: 429, retryAfter: expect.stringMatching(/^\d+$/) })
    const tool = await post(call('list_units'))
    expect(tool.status).toBe(200)
    expect(tool.text).toMatch(/quota_exceeded: .*Try again in \d+ s/)
  } finally {
    await bounded.close()
  }
})

describe('any JSON sent to /mcp', () => {
  const json = fc.jsonValue({ maxDepth: 4 })
  const method = fc.constantFrom(
    'initialize',
    'tools/call',
    'tools/list',
    'ping',
    'server/discover',
    'subscriptions/listen',
    'x',
  )
  const message = fc.record(
    {
      jsonrpc: fc.constantFrom('2.0', '1.0'),
      id: fc.oneof(fc.integer(), fc.string(), json),
      method: fc.oneof(method, json),
      params: fc.oneof(
        json,
        fc.record(
          {
            name: fc.constantFrom('list_units', 'get_unit', 'read_logs', 'fork', 'x'),
            arguments: json,
            _meta: json,
          },
          { requiredKeys: [] },
        ),
      ),
    },
    { requiredKeys: [] },
  )
  const header = fc.constantFrom('2025-06-18', '2026-07-28', '2099-01-01', 'x')

  test('is answered without a fault, and has one audit row', async () => {
    const check = async (body: unknown, version: string | null) => {
      const headers = version === null ? {} : { 'mcp-protocol-version': version }
      const { status, rows, text } = await send({ body: JSON.stringify(body), headers })
      expect({ status, text }).toSatisfy(({ status: told }: { status: number }) => told < 500)
      expect(rows).toHaveLength(1)
      expect(rows[0]?.status).toSatisfy((told: number) => told < 500)
    }
    const anything = fc.oneof(
      { weight: 3, arbitrary: message },
      { weight: 1, arbitrary: json.filter((value) => !Array.isArray(value)) },
    )
    await fc.assert(fc.asyncProperty(anything, fc.option(header), check), { numRuns: 150 })
  }, 60_000)
})
