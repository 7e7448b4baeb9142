// What holds for every request: ids, methods, paths, media types and malformed input (reliability L6, Z2).

import { once } from 'node:events'
import { request } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { sendRaw } from '../support/raw-http.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
afterAll(async () => await service.close())

const post = (body: unknown, headers: Record<string, string> = {}) =>
  service.call('POST', '/v1/units', { key: team.key, body, headers })

describe('x-request-id (spec 7)', () => {
  const get = (requestId: string) =>
    service.call('GET', '/v1/units', { key: team.key, headers: { 'x-request-id': requestId } })

  test('is generated for every response, and repeated in errors', async () => {
    const { headers, body } = await service.call('GET', '/v1/units')
    expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
    expect(body).toMatchObject({ error: { requestId: headers.get('x-request-id') } })
  })

  test.each(['mine', '!', '~'.repeat(128), 'a=b;c,"d"'])(
    'is the value %j when the caller sends it',
    async (requestId) => {
      expect((await get(requestId)).headers.get('x-request-id')).toBe(requestId)
    },
  )

  test.each(['~'.repeat(129), 'two words', 'höflich', ''])(
    'is generated when the caller sends %j',
    async (requestId) => {
      expect((await get(requestId)).headers.get('x-request-id')).toMatch(/^req_/)
    },
  )

  test('is generated for input that is not HTTP', async () => {
    const answer = await sendRaw(service.port, 'NONSENSE\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toMatch(/x-request-id: req_/)
    expect(answer).toContain('"code":"validation"')
  })

  test('belongs to an error with code headers_too_large (431) for oversized headers', async () => {
    const answer = await sendRaw(
      service.port,
      `GET /v1/units HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ${'y'.repeat(70_000)}\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toContain('"code":"headers_too_large"')
  })

  test('cannot inject a header by a line break', async () => {
    const answer = await sendRaw(
      service.port,
      `GET /v1/units HTTP/1.1\r\nhost: 127.0.0.1\r\nx-request-id: a\r\n evil: 1\r\nconnection: close\r\n\r\n`,
    )
    expect(answer).not.toMatch(/^evil:/m)
  })
})

describe('methods and paths', () => {
  test.each([
    ['PUT', '/v1/units', 'POST, GET, HEAD'],
    ['DELETE', '/v1/units', 'POST, GET, HEAD'],
    ['OPTIONS', '/v1/units', 'POST, GET, HEAD'],
    ['PUT', '/v1/units/unit_1', 'GET, HEAD, PATCH, DELETE'],
    ['GET', '/v1/units/unit_1/stop', 'POST'],
    ['POST', '/v1/units/unit_1/logs', 'GET, HEAD'],
    ['PATCH', '/v1/units/unit_1/files', 'POST, PUT, GET, HEAD, DELETE'],
    ['POST', '/v1/openapi.json', 'GET, HEAD'],
    ['POST', '/account', 'GET'],
  ])('%s %s returns 405 with the allowed methods', async (method, path, allow) => {
    const { status, headers, body } = await service.call(method, path)
    expect(status).toBe(405)
    expect(headers.get('allow')).toBe(allow)
    expect(body).toMatchObject({
      error: { code: 'method_not_allowed', requestId: headers.get('x-request-id') },
    })
  })

  test('HEAD answers like GET without the body, also for a stream, and has its audit row', async () => {
    const { id } = await makeUnit(service, team)
    for (const path of [
      '/v1/units',
      `/v1/units/${id}`,
      `/v1/units/${id}/logs?follow=true`,
      '/v1/openapi.json',
    ]) {
      const { key } = team
      const head = await service.fetch('HEAD', path, { key })
      expect([path, head.status, (await head.arrayBuffer()).byteLength]).toEqual([path, 200, 0])
      if (path.includes('follow')) continue
      const got = await service.fetch('GET', path, { key })
      expect(head.headers.get('content-type')).toBe(got.headers.get('content-type'))
      expect(Number(head.headers.get('content-length'))).toBeGreaterThan(0)
      await got.arrayBuffer()
    }
    expect((await service.fetch('HEAD', '/v1/units')).status).toBe(401)
    // The row of a stream may come after its answer.
    await vi.waitFor(async () => {
      const found = service.app.db.selectFrom('audit').select('action').where('target', '=', id)
      const actions = (await found.execute()).map(({ action }) => action)
      expect(actions.toSorted()).toEqual(['unit.create', 'unit.get', 'unit.get', 'unit.logs'])
    })
  })

  test.each(['TRACE', 'PROPFIND', 'QUERY'])('%s returns 405 too', async (method) => {
    const request = `${method} /v1/units HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`
    const answer = await sendRaw(service.port, request)
    expect(answer).toMatch(/^HTTP\/1\.1 405 /)
    expect(answer).toMatch(/\r\nallow: POST, GET, HEAD\r\n/)
  })

  test.each([
    '/v1',
    '/v1/',
    '/v1/units/',
    '/v1//units',
    '//v1/units',
    '/v1/Units',
    '/v1/units;a=b',
    '/v1%2Funits',
    '/v1/units%00',
    '/v2/units',
    '/v1/units/a/b/c',
    '/../v1/units',
    '/%2e%2e/v1/units',
    '/%',
    '/%zz',
  ])('%s returns 404, and not the list of units', async (path) => {
    const request = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${team.key}\r\nconnection: close\r\n\r\n`
    const answer = await sendRaw(service.port, request)
    expect(answer).toMatch(/^HTTP\/1\.1 404 /)
    expect(answer).toContain('"code":"not_found"')
  })

  test('a percent-encoded spelling of a path requires credentials all the same', async () => {
    const answer = await sendRaw(
      service.port,
      `GET /v1/%75nits HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 401 /)
  })
})

describe('request bodies', () => {
  test.each([
    ['text/plain', 415],
    ['application/xml', 415],
    ['application/json; charset=utf-16', 415],
    ['not a media type', 415],
    ['application/jsonx', 415],
    ['application/json; charset=UTF-8', 400],
    ['APPLICATION/JSON', 400],
  ])('of the media type %s get status %i', async (type, status) => {
    const answer = await post('{}', { 'content-type': type })
    const code = status === 415 ? 'unsupported_media_type' : 'validation'
    expect(answer).toMatchObject({ status, body: { error: { code } } })
  })

  test('without a media type are refused', async () => {
    const body = '{"spec":{}}'
    const request =
      `POST /v1/units HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${team.key}\r\n` +
      `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`
    expect(await sendRaw(service.port, request)).toMatch(/^HTTP\/1\.1 415 /)
  })

  test('that are compressed are refused', async () => {
    const body = gzipSync('{}')
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    expect((await post(body, headers)).status).toBe(415)
  })

  test('of 16 MB are refused before they are read', async () => {
    const answer = await post(`{"spec":"${'x'.repeat(16 * 1024 * 1024)}"}`, {
      'content-type': 'application/json',
    })
    expect(answer).toMatchObject({ status: 413, body: { error: { code: 'payload_too_large' } } })
  })

  test('of 16 MB without a declared length are refused too', async () => {
    const chunk = new TextEncoder().encode('x'.repeat(1024 * 1024))
    let left = 16
    const body = new ReadableStream({
      pull: (controller) => (left-- > 0 ? controller.enqueue(chunk) : controller.close()),
    })
    const response = await fetch(`${service.baseUrl}/v1/units`, {
      method: 'POST',
      body,
      duplex: 'half',
      headers: { authorization: `Bearer ${team.key}`, 'content-type': 'application/json' },
    })
    expect(response.status).toBe(413)
  })

  test.each(['', '{', '[]', '"text"', 'null', '1', '\uFEFF{}', '{"spec":1,"spec":2}', '{"__proto__":{}}'])(
    'like %j are refused with 400 and details',
    async (body) => {
      const answer = await post(body, { 'content-type': 'application/json' })
      expect(answer).toMatchObject({
        status: 400,
        body: { error: { code: 'validation', details: expect.any(Array) } },
      })
    },
  )

  test.each([
    [{}, 'spec'],
    [{ spec: { name: 'a', image: 'node', size: 1 } }, 'spec.size'],
    [{ spec: { name: 'a', image: 'node', surprise: 1 } }, 'spec.surprise'],
    [{ spec: { name: 'a', image: 'node' }, teamId: 'team_x' }, 'teamId'],
    [{ spec: { name: 'a', image: 'node', env: { A: 1 } } }, 'spec.env.A'],
    [{ spec: { name: 'a', image: 'node', env: { A: { secret: 'S', extra: 1 } } } }, 'spec.env.A.extra'],
    [{ spec: { name: 'a', image: 'node', env: { A: 'nul\0' } } }, 'spec.env.A'],
    [{ spec: { name: 'a', image: 'node', cmd: ['ok', 'nul\0'] } }, 'spec.cmd.1'],
    [{ spec: { name: 'a', image: 'node', ports: {} } }, 'spec.ports'],
    [{ spec: [] }, 'spec'],
    [{ spec: { name: 'a', image: 'node', sleep: 30 } }, 'spec.sleep'],
  ])('like %j are refused with the path of the field', async (body, path) => {
    const answer = await post(body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error: { code: 'validation', details: [{ path }] } })
  })

  test('with a number for sleep are refused with the string to send instead', async () => {
    const { body } = await post({ spec: { name: 'a', image: 'node', sleep: 30 } })
    expect(body).toMatchObject({ error: { message: expect.stringContaining('"30m"') } })
  })

  test('with a hundred thousand wrong fields get an answer of bounded size', async () => {
    const wrong = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]))
    const { status, body } = await post(wrong)
    expect(status).toBe(400)
    expect(JSON.stringify(body).length).toBeLessThan(50_000)
  })

  test('of an operation without a body may be missing or an empty object, and nothing else', async () => {
    const { id } = await makeUnit(service, team)
    const stop = (body?: unknown) => service.call('POST', `/v1/units/${id}/stop`, { key: team.key, body })
    expect((await stop({ force: true })).body).toMatchObject({ error: { details: [{ path: 'force' }] } })
    expect((await stop('[]')).status).toBe(415)
    expect((await stop({})).status).toBe(200)
    const start = await service.call('POST', `/v1/units/${id}/start`, {
      key: team.key,
      headers: { 'content-type': 'application/json' },
    })
    expect(start.status).toBe(200)
  })

  test('of an upload that breaks off write no file and cause no fault', async () => {
    const { id } = await makeUnit(service, team)
    const sent = request(`${service.baseUrl}/v1/units/${id}/files?path=/f`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${team.key}`, expect: '100-continue' },
    })
    sent.on('error', () => {})
    sent.flushHeaders()
    // The server has the call.
    await once(sent, 'continue')
    sent.write('half', () => sent.destroy())
    const rows = () =>
      service.app.db.selectFrom('audit').select('status').where('action', '=', 'unit.file.write').execute()
    await expect.poll(rows).toEqual([{ status: 499 }])
    const read = await service.call('GET', `/v1/units/${id}/files?path=/f`, { key: team.key })
    expect(read.status).toBe(404)
  })
})

describe('the error envelope (spec 7)', () => {
  test('hides the details of a fault, which are logged with the request id', async () => {
    const { id } = await makeUnit(service, team)
    service.engine.fail('exec', new Error('boom at /srv/secret/path, select * from users'))
    const { status, headers, body } = await service.call('POST', `/v1/units/${id}/exec`, {
      key: team.key,
      body: { cmd: ['true'] },
    })
    expect([500, 502]).toContain(status)
    expect(JSON.stringify(body)).not.toMatch(/secret|select|boom|node:|\.ts/)
    const line = service.logged.find((text) => text.includes(headers.get('x-request-id') ?? ''))
    expect(line).toContain('boom')
  })

  test('has status 502 and code provider_error for a failure of the engine', async () => {
    service.engine.fail('pull', 'image_unavailable')
    const { status, body } = await post({ spec: { name: 'unreachable', image: 'node:22' } })
    expect(status).toBe(502)
    expect(body).toMatchObject({ error: { code: 'provider_error', details: { unitId: expect.any(String) } } })
  })
})

test('a client that sends all of a refused body before it reads gets its answer', async () => {
  const { id } = await makeUnit(service, team)
  const head = [
    `PUT /v1/units/${id}/files?path=/big HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${team.key}`,
    'content-type: application/octet-stream',
    'content-length: 8000000',
    'connection: close',
  ].join('\r\n')
  const answer = await sendRaw(service.port, `${head}\r\n\r\n${'x'.repeat(8_000_000)}`)
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer).toMatch(/at most 1048576 bytes/)
})
