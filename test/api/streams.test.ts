// Spec 6 and design 5: every event stream, frame by frame (reliability Z7).

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { execExitEventSchema, execOutputEventSchema } from '../../src/contract/exec.ts'
import { logLineSchema } from '../../src/contract/logs.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { revokeCredential } from '../../src/store/credentials.ts'
import { collectEvents, readEvents } from '../support/events.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
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

const stream = (method: string, path: string, options: object = {}) =>
  service.fetch(method, path, { key: team.key, headers: { accept: 'text/event-stream' }, ...options })

const exec = (id: string, body: object, options: object = {}) =>
  stream('POST', `/v1/units/${id}/exec`, { body, ...options })

async function statusOfAudit(id: string, action: string): Promise<(number | null)[]> {
  const rows = await service.app.db
    .selectFrom('audit')
    .select('status')
    .where('target', '=', id)
    .where('action', '=', action)
    .execute()
  return rows.map(({ status }) => status)
}

describe('the stream of an exec', () => {
  test('sends the output of each stream, and then the exit code', async () => {
    const { id } = await makeUnit(service, team)
    const answer = await exec(id, { cmd: ['sh', '-c', 'echo out; echo err >&2; exit 3'] })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(await collectEvents(answer)).toMatchObject([
      { event: 'stdout', data: { data: 'out\n' } },
      { event: 'stderr', data: { data: 'err\n' } },
      { event: 'exit', data: { exitCode: 3, timedOut: false, truncated: false } },
    ])
  })

  test.each([
    [
      'text with everything that could break a frame',
      Buffer.from('a\n\n\r\ndata: x\r\u2028event: y\n\0: z\n\n'),
    ],
    ['text of every length of character', Buffer.from('aäẞ😀'.repeat(20_000))],
    ['bytes that are no text', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['3 MB', Buffer.alloc(3 * 1024 * 1024, 'ä')],
  ])('loses nothing of %s', async (_title, content) => {
    const { id } = await makeUnit(service, team)
    for (let at = 0; at < content.length; at += 1024 * 1024) {
      const part = content.subarray(at, at + 1024 * 1024)
      await service.call('PUT', `/v1/units/${id}/files?path=/part${at}`, { key: team.key, body: part })
    }
    const parts = Array.from(
      { length: Math.ceil(content.length / 1024 ** 2) },
      (_, n) => `/part${n * 1024 ** 2}`,
    )
    const events = await collectEvents(await exec(id, { cmd: ['cat', ...parts] }))
    expect(events.at(-1)).toMatchObject({ event: 'exit', data: { exitCode: 0, truncated: false } })
    execExitEventSchema.parse(events.at(-1)?.data)
    const printed = events.slice(0, -1).map(({ data }) => {
      const { data: text, encoding } = execOutputEventSchema.parse(data)
      return Buffer.from(text, encoding ?? 'utf8')
    })
    expect(Buffer.concat(printed).equals(content)).toBe(true)
  })

  test('returns a refusal with its own status, as without a stream', async () => {
    const { id } = await makeUnit(service, team)
    await service.call('POST', `/v1/units/${id}/stop`, { key: team.key })
    expect((await exec(id, { cmd: ['true'] })).status).toBe(409)
    expect((await exec(id, { cmd: [] })).status).toBe(400)
    expect((await exec('unit_00000000000000000000000000000000', { cmd: ['true'] })).status).toBe(404)
  })

  test('reports a failure after the first byte as an error event', async () => {
    const { id } = await makeUnit(service, team)
    const answer = await exec(id, { cmd: ['sh', '-c', 'echo begun; sleep infinity'] })
    const events = readEvents(answer)
    expect((await events.next()).value).toMatchObject({ event: 'stdout' })
    service.engine.crash()
    expect((await events.next()).value).toMatchObject({
      event: 'error',
      data: { error: { code: expect.any(String), requestId: answer.headers.get('x-request-id') } },
    })
    expect((await events.next()).done).toBe(true)
    await expect.poll(() => statusOfAudit(id, 'unit.exec')).toEqual([503])
  })

  test('ends with an error when its unit is stopped or destroyed; without a stream the call returns 409', async () => {
    for (const [method, end, state] of [
      ['POST', '/stop', 'stopped'],
      ['DELETE', '', 'destroyed'],
    ] as const) {
      const { id } = await makeUnit(service, team)
      const cmd = ['sh', '-c', 'echo begun; sleep infinity']
      const events = readEvents(await exec(id, { cmd }))
      const plain = service.call<{ error: unknown }>('POST', `/v1/units/${id}/exec`, {
        key: team.key,
        body: { cmd },
      })
      expect((await events.next()).value).toMatchObject({ event: 'stdout', data: { data: 'begun\n' } })
      const begun = () => service.engine.calls.filter((call) => call.operation === 'exec' && call.id === id)
      await expect.poll(() => begun().length).toBe(2)
      await service.call(method, `/v1/units/${id}${end}`, { key: team.key })
      const error = { code: 'invalid_state', message: expect.stringContaining(`was ${state} while`) }
      expect((await events.next()).value).toMatchObject({ event: 'error', data: { error } })
      expect((await events.next()).done).toBe(true)
      const output = { stdout: 'begun\n', stderr: '', truncated: false }
      expect(await plain).toMatchObject({ status: 409, body: { error: { ...error, details: { output } } } })
    }
  })

  test('stays open by comments while the command prints nothing', async () => {
    const { id } = await makeUnit(service, team)
    const asking = exec(id, { cmd: ['sleep', '120'], timeoutMs: 200 * SECOND })
    await expect
      .poll(() => service.engine.calls.some((call) => call.operation === 'exec' && call.id === id))
      .toBe(true)
    service.clock.advance(SECOND)
    const answer = await asking
    expect(answer.status).toBe(200)
    const comments: string[] = []
    const reading = collectEvents(answer, (comment) => void comments.push(comment))
    for (const expected of [1, 2, 3]) {
      await expect.poll(() => comments.length).toBe(expected)
      service.clock.advance(15 * SECOND)
    }
    service.clock.advance(120 * SECOND)
    expect(await reading).toMatchObject([{ event: 'exit', data: { exitCode: 0 } }])
  })

  test('ends its command when the caller disconnects, with one audit row', async () => {
    const { id } = await makeUnit(service, team)
    const gone = new AbortController()
    const answer = await exec(id, { cmd: ['yes'] }, { signal: gone.signal })
    for await (const event of readEvents(answer)) {
      expect(event.event).toBe('stdout')
      break
    }
    gone.abort()
    await expect.poll(() => statusOfAudit(id, 'unit.exec')).toEqual([499])
  })
})

describe('the stream of a log', () => {
  const chatty = { cmd: ['sh', '-c', 'echo one; echo two; sleep 3600; echo three; sleep infinity'] }
  const lines = (events: { data: unknown }[]) => events.map(({ data }) => logLineSchema.parse(data).text)

  test('sends earlier lines with their cursors, and then new ones', async () => {
    const { id } = await makeUnit(service, team, chatty)
    const events = readEvents(await stream('GET', `/v1/units/${id}/logs?follow=true`))
    const first = [(await events.next()).value, (await events.next()).value]
    expect(first).toMatchObject([{ event: 'line', id: expect.any(String) }, { event: 'line' }])
    expect(lines(first)).toEqual(['one', 'two'])
    service.clock.advance(3600 * SECOND)
    expect((await events.next()).value).toMatchObject({ event: 'line', data: { text: 'three' } })
    await events.return(undefined)
    await expect.poll(() => statusOfAudit(id, 'unit.logs')).toEqual([499])
  })

  test('resumes after the line of Last-Event-ID without loss or duplicates', async () => {
    const { id } = await makeUnit(service, team, chatty)
    const events = readEvents(await stream('GET', `/v1/units/${id}/logs?follow=true`))
    const { value } = await events.next()
    await events.return(undefined)
    const again = readEvents(
      await stream('GET', `/v1/units/${id}/logs?follow=true`, {
        headers: { 'last-event-id': value?.id ?? '' },
      }),
    )
    expect((await again.next()).value).toMatchObject({ event: 'line', data: { text: 'two' } })
    await again.return(undefined)
  })

  test('from a time in the future sends no earlier lines', async () => {
    const { id } = await makeUnit(service, team, chatty)
    const at = new Date(service.clock.now().getTime() + 1800 * SECOND).toISOString()
    const events = readEvents(await stream('GET', `/v1/units/${id}/logs?follow=true&since=${at}`))
    const first = events.next()
    await expect
      .poll(() => service.engine.calls.some((call) => call.operation === 'followLogs' && call.id === id))
      .toBe(true)
    service.clock.advance(3600 * SECOND)
    expect((await first).value).toMatchObject({ event: 'line', data: { text: 'three' } })
    await events.return(undefined)
  })

  test('ends with the run, and says why', async () => {
    const { id } = await makeUnit(service, team, chatty)
    const collecting = collectEvents(await stream('GET', `/v1/units/${id}/logs?follow=true`))
    await service.call('POST', `/v1/units/${id}/stop`, { key: team.key })
    const events = await collecting
    expect(events.at(-1)).toMatchObject({ event: 'end', data: { reason: expect.any(String) } })
    expect(lines(events.slice(0, -1))).toEqual(['one', 'two'])
    await expect.poll(() => statusOfAudit(id, 'unit.logs')).toEqual([200])
  })

  test('has pages that continue from the cursor `next`', async () => {
    const { id } = await makeUnit(service, team, chatty)
    const read = async (query: string) =>
      (
        await service.call<{ lines: { text: string }[]; next: string }>(
          'GET',
          `/v1/units/${id}/logs${query}`,
          {
            key: team.key,
          },
        )
      ).body
    await expect.poll(async () => (await read('')).lines.length).toBe(2)
    const page = await read('?since=1970-01-01T00:00:00Z&limit=1')
    expect(page.lines).toMatchObject([{ text: 'one', stream: 'stdout', at: expect.any(String) }])
    expect(await read(`?since=${page.next}`)).toMatchObject({ lines: [{ text: 'two' }] })
  })

  test.each(['since=x', 'since=1970-13-45', 'limit=0', 'limit=501', 'limit=-1', 'follow=yes', 'tail=5'])(
    'refuses the query ?%s',
    async (query) => {
      const { id } = await makeUnit(service, team)
      const answer = await service.call('GET', `/v1/units/${id}/logs?${query}`, { key: team.key })
      expect(answer).toMatchObject({
        status: 400,
        body: { error: { details: [{ path: query.split('=')[0] }] } },
      })
    },
  )
})

test('a revoked key ends its streams within five seconds (S5)', async () => {
  const { id } = await makeUnit(service, team)
  const follow = readEvents(await stream('GET', `/v1/units/${id}/logs?follow=true`))
  const output = readEvents(await exec(id, { cmd: ['sh', '-c', 'echo begun; sleep infinity'] }))
  await output.next()
  await revokeCredential(service.app.db, {
    teamId: team.teamId,
    id: team.keyId,
    at: service.clock.now(),
  })
  const revokedMs = service.clock.monotonicMs()
  service.clock.advance(5 * SECOND)
  for (const events of [follow, output]) {
    expect((await events.next()).value).toMatchObject({
      event: 'error',
      data: { error: { code: 'unauthorized' } },
    })
    expect((await events.next()).done).toBe(true)
  }
  // The service time goes on during the wait, by less than another round of the check may take.
  expect(service.clock.monotonicMs() - revokedMs).toBeLessThan(15 * SECOND)
  await expect.poll(() => statusOfAudit(id, 'unit.exec')).toEqual([401])
})

test('closing the server tells stream clients to come back, and lets short calls finish (F27)', async () => {
  const short = await startService()
  const own = await makeTeam(short)
  const { id } = await makeUnit(short, own)
  const follower = await short.fetch('GET', `/v1/units/${id}/logs?follow=true`, {
    key: own.key,
    headers: { accept: 'text/event-stream' },
  })
  const running = short.call('POST', `/v1/units/${id}/exec`, {
    key: own.key,
    body: { cmd: ['sh', '-c', 'sleep 0.3; echo done'] },
  })
  const events = collectEvents(follower)
  await expect.poll(() => short.engine.calls.some(({ operation }) => operation === 'exec')).toBe(true)
  const closed = short.close()
  expect(await running).toMatchObject({ status: 200, body: { stdout: 'done\n' } })
  expect((await events).at(-1)).toMatchObject({ event: 'error', data: { error: { code: 'unavailable' } } })
  await closed
})
