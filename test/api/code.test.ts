// /v1/units/{id}/code: what the API makes of the answers of a unit's interpreter, which may say anything.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { readEvents } from '../support/events.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unit: Unit
/** What the interpreter of the unit says, and what it was asked. */
let answer: { exitCode: number; stdout: string; endsAfterMs?: number }
let asked: unknown[] = []
let hasProgram = false
let program = 'client'

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  service.engine.onExec(({ argv, stdin }) => {
    if (argv[0] === 'test') return { exitCode: hasProgram ? 0 : 1, stdout: '' }
    const [, name] = /\/berth-code\/(\w+)$/.exec(argv[0] ?? '') ?? []
    if (name === undefined) return null
    if (name !== program) return { exitCode: 127, stdout: '' }
    asked.push(JSON.parse(String(stdin)))
    return answer
  })
})
beforeEach(async () => {
  asked = []
  hasProgram = false
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

const says = (...events: object[]) =>
  (answer = { exitCode: 0, stdout: events.map((event) => `${JSON.stringify(event)}\n`).join('') })
const run = async (body: object) =>
  await service.call('POST', `/v1/units/${unit.id}/code`, { key: team.key, body })

const begin = { type: 'begin', context: 'ctx_1', language: 'python' }
const end = { type: 'end', end: 'done', count: 3, context: 'ctx_1' }
const value = { type: 'result', data: { 'text/plain': '2', 'image/png': 'iVBO' }, main: true }

it('an answer has the output, the values and the error of the code', async () => {
  const error = { type: 'error', name: 'ValueError', value: 'bad', traceback: ['line 1'] }
  says(
    begin,
    { type: 'stdout', text: 'a' },
    { type: 'stderr', text: 'b' },
    { type: 'stdout', text: 'c' },
    value,
    error,
    end,
  )
  const { status, body } = await run({ code: '1+1', timeoutMs: 5000 })
  expect(status).toBe(200)
  expect(body).toEqual({
    context: 'ctx_1',
    language: 'python',
    executionCount: 3,
    timedOut: false,
    truncated: false,
    stdout: 'ac',
    stderr: 'b',
    results: [{ data: value.data, main: true }],
    error: { name: 'ValueError', value: 'bad', traceback: ['line 1'] },
  })
  expect(asked).toEqual([{ op: 'run', code: '1+1', timeoutMs: 5000 }])
})

it('an answer comes with its last line, and a command that goes on is killed 5 s later', async () => {
  says(begin, value, end)
  const killed = Promise.withResolvers<void>()
  answer = { ...answer, endsAfterMs: 10 * MINUTE }
  const sleep = service.clock.sleep.bind(service.clock)
  service.clock.sleep = async (ms, signal) => {
    if (ms === 10 * MINUTE) signal?.addEventListener('abort', () => killed.resolve())
    await sleep(ms, signal)
  }
  expect((await run({ code: '1+1' })).status).toBe(200)
  service.clock.advance(6 * SECOND)
  await killed.promise
  service.clock.sleep = sleep
})

it('a stream has the same as events', async () => {
  says(begin, { type: 'stdout', text: 'a' }, value, { ...end, end: 'timeout', cut: true })
  const answered = await service.fetch('POST', `/v1/units/${unit.id}/code`, {
    key: team.key,
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ code: '1+1' }),
  })
  const events = []
  for await (const { event, data } of readEvents(answered)) events.push([event, data])
  const told = { context: 'ctx_1', language: 'python', executionCount: 3, timedOut: true, truncated: true }
  expect(events).toEqual([
    ['begin', { context: 'ctx_1', language: 'python' }],
    ['stdout', { data: 'a' }],
    ['result', { data: value.data, main: true }],
    ['end', told],
  ])
})

it('an answer keeps a megabyte of each stream and says that it left some out', async () => {
  says(begin, { type: 'stdout', text: 'x'.repeat(3_000_000) }, end)
  const { body } = await run({ code: 'print' })
  expect(body).toMatchObject({ truncated: true })
  expect((body as { stdout: string }).stdout).toHaveLength(1_048_576)
})

it('a unit whose disk is of an older image is asked by the program that it has', async () => {
  program = 'ask'
  says(begin, value, end)
  expect(await run({ code: '1+1' })).toMatchObject({ status: 200, body: { results: [{ main: true }] } })
  program = 'client'
})

describe('a call is refused', () => {
  const cases: [string, object, { code: string; message: RegExp; status: number }][] = [
    [
      'for a language that there is not',
      { language: 'cobol' },
      { status: 400, code: 'validation', message: /python/ },
    ],
    ['without code', { code: undefined }, { status: 400, code: 'validation', message: /code/ }],
  ]
  it.each(cases)('%s', async (_why, change, { status, code, message }) => {
    const { status: got, body } = await run({ code: '1', ...change })
    expect(got).toBe(status)
    expect(body).toMatchObject({ error: { code, message: expect.stringMatching(message) } })
    expect(asked).toEqual([])
  })

  const refusals: [string, string, number, string][] = [
    ['for a context of another unit', 'not_found', 404, 'not_found'],
    ['for a context that a start without memory lost', 'lost', 409, 'invalid_state'],
    ['for the 65th context', 'limit', 409, 'invalid_state'],
    ['for a kernel that does not start', 'unavailable', 503, 'unavailable'],
    ['for a context in another language', 'validation', 400, 'validation'],
  ]
  it.each(refusals)('%s', async (_why, refusal, status, code) => {
    says({ type: 'refused', code: refusal, message: 'so it is' })
    const { status: got, body } = await run({ code: '1', context: 'ctx_other' })
    expect([got, body]).toMatchObject([status, { error: { code } }])
  })

  it('by a unit without an interpreter, with the image that has one', async () => {
    answer = { exitCode: 127, stdout: '' }
    const { status, body } = await run({ code: '1' })
    expect(status).toBe(409)
    expect(body).toMatchObject({ error: { message: expect.stringContaining('berth.local/code:1') } })
  })

  it('by a unit that has an interpreter and could not run the question, with what may be missing', async () => {
    answer = { exitCode: 126, stdout: '' }
    hasProgram = true
    const { status, body } = await run({ code: '1' })
    expect(status).toBe(502)
    expect(body).toMatchObject({ error: { message: expect.stringContaining('lack memory') } })
  })
})

describe('a unit whose interpreter was replaced', () => {
  const lies: [string, string][] = [
    ['says what is no JSON', 'hello\n'],
    ['says an event that there is not', `${JSON.stringify({ type: 'money', cents: 5 })}\n`],
    ['says a language that there is not', `${JSON.stringify({ ...begin, language: 'cobol' })}\n`],
    ['never ends a line', 'x'.repeat(12_000_000)],
    ['ends in the middle', `${JSON.stringify(begin)}\n`],
    ['ends without a beginning', `${JSON.stringify(end)}\n`],
  ]
  it.each(lies)('%s, and the call fails with 502', async (_lie, stdout) => {
    answer = { exitCode: 0, stdout }
    const { status, body } = await run({ code: '1' })
    expect([status, body]).toMatchObject([502, { error: { code: 'provider_error' } }])
    says(begin, end)
    expect((await run({ code: '1' })).status).toBe(200)
  })
})

it('contexts are made, listed, restarted, interrupted and deleted', async () => {
  const context = {
    id: 'ctx_1',
    language: 'python',
    cwd: '/tmp',
    state: 'idle',
    createdAt: '2026-11-28T11:00:00Z',
  }
  const shown = { ...context, unitId: unit.id }
  const path = `/v1/units/${unit.id}/code/contexts`
  const call = async (method: string, rest: string, body?: object) =>
    await service.call(method, `${path}${rest}`, { key: team.key, ...(body && { body }) })
  says({ type: 'end', context })
  expect(await call('POST', '', { cwd: '/tmp' })).toMatchObject({ status: 200, body: shown })
  expect(await call('POST', '/ctx_1/restart')).toMatchObject({ status: 200, body: shown })
  expect(await call('POST', '/ctx_1/interrupt')).toMatchObject({ status: 200, body: shown })
  expect(await call('DELETE', '/ctx_1')).toMatchObject({ status: 200, body: shown })
  says({ type: 'end', contexts: [context] })
  expect(await call('GET', '')).toMatchObject({ status: 200, body: { contexts: [shown] } })
  expect(asked).toEqual([
    { op: 'create', language: 'python', cwd: '/tmp' },
    { op: 'restart', context: 'ctx_1' },
    { op: 'interrupt', context: 'ctx_1' },
    { op: 'delete', context: 'ctx_1' },
    { op: 'list' },
  ])
})

it('the audit log has how much code ran, and not the code', async () => {
  says(begin, end)
  await run({ code: 'password = "hunter2"' })
  const { body } = await service.call('GET', '/v1/audit?limit=5', { key: team.key })
  const rows = JSON.stringify(body)
  expect(rows).toContain('"action":"code.run"')
  expect(rows).toContain('"codeBytes":20')
  expect(rows).not.toContain('hunter2')
})
