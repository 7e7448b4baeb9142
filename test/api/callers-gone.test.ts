// F21: the caller disconnects in the middle of a call. A lasting change completes and can be read later, work that
// only the caller wanted ends, and nothing is kept for the caller.

import { connect } from 'node:net'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createServer } from '../../src/api/server.ts'
import { createApp } from '../../src/app.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Operation } from '../support/fake-engine/faults.ts'
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
/** No calls in progress, uses, waiting callers or connections are left. */
afterEach(async () => {
  const { app } = service
  await expect.poll(() => [...app.activity.uses.ids(), ...app.activity.waiters.ids()]).toEqual([])
  await expect
    .poll(async () => await app.db.selectFrom('audit').select('id').where('status', 'is', null).execute())
    .toEqual([])
})

const unitOf = async (id: string) =>
  (await service.call<Unit>('GET', `/v1/units/${id}`, { key: team.key })).body
const hasAsked = async (operation: Operation, id?: string) =>
  await expect
    .poll(() => service.engine.calls.some((call) => call.operation === operation && (!id || call.id === id)))
    .toBe(true)
const execsUnderWay = (id: string) => service.app.activity.uses.of(id)

/** Sends a call, and disconnects before its answer, once `until` resolves. */
async function leave(
  method: string,
  path: string,
  body: unknown,
  until: () => Promise<unknown>,
): Promise<void> {
  const gone = new AbortController()
  const call = service.fetch(method, path, { key: team.key, body, signal: gone.signal })
  const broken = expect(call).rejects.toThrow('abort')
  await until()
  const open = [...service.connections]
  gone.abort()
  await broken
  // The client knows first. What a test does next may depend on the server having seen it.
  await expect.poll(() => open.some((socket) => socket.destroyed)).toBe(true)
}

async function statusOf(action: string): Promise<(number | null)[]> {
  const rows = await service.app.db
    .selectFrom('audit')
    .select('status')
    .where('team_id', '=', team.teamId)
    .where('action', '=', action)
    .orderBy('id')
    .execute()
  return rows.map(({ status }) => status)
}

describe('a caller that disconnects', () => {
  test.each(['pull', 'create', 'start'] as const)(
    'during the %s of a create finds its unit created',
    async (operation) => {
      const release = service.engine.hang(operation)
      const before = service.engine.calls.length
      await leave('POST', '/v1/units', { spec: { name: 'kept', image: 'node:22' } }, async () => {
        await expect
          .poll(() => service.engine.calls.slice(before).some((call) => call.operation === operation))
          .toBe(true)
      })
      release()
      await expect.poll(() => statusOf('unit.create')).toEqual([499])
      await expect
        .poll(async () => (await service.call<{ units: Unit[] }>('GET', '/v1/units', { key: team.key })).body)
        .toMatchObject({ units: [{ name: 'kept', state: 'running' }] })
    },
  )

  test('during a stop or start finds it done', async () => {
    const { id } = await makeUnit(service, team)
    for (const [verb, operation, ends] of [
      ['stop', 'stop', 'stopped'],
      ['start', 'start', 'running'],
    ] as const) {
      const release = service.engine.hang(operation)
      const before = service.engine.calls.length
      await leave('POST', `/v1/units/${id}/${verb}`, undefined, async () => {
        await expect
          .poll(() => service.engine.calls.slice(before).some((call) => call.operation === operation))
          .toBe(true)
      })
      release()
      await expect.poll(async () => (await unitOf(id)).state).toBe(ends)
    }
  })

  test.each([
    ['', {}],
    [' that is streamed', { accept: 'text/event-stream' }],
  ])('during a command%s ends the command', async (_how, headers) => {
    const { id } = await makeUnit(service, team)
    const gone = new AbortController()
    const body = { cmd: ['sleep', '3600'], timeoutMs: 3_600_000 }
    const call = service
      .fetch('POST', `/v1/units/${id}/exec`, { key: team.key, body, headers, signal: gone.signal })
      .catch((error: unknown) => error)
    await hasAsked('exec', id)
    expect(execsUnderWay(id)).toBe(1)
    gone.abort()
    await call
    await expect.poll(() => execsUnderWay(id)).toBe(0)
    await expect.poll(() => statusOf('unit.exec')).toEqual([499])
    expect((await unitOf(id)).state).toBe('running')
  })

  test('before its unit is awake leaves the unit awake, and the command does not run', async () => {
    const { id } = await makeUnit(service, team, { sleep: '1m' })
    const body = { sleep: '1m', now: true }
    await service.call('POST', `/v1/units/${id}/sleep`, { key: team.key, body })
    const release = service.engine.hang('thaw')
    const commands: string[][] = []
    service.engine.onExec((command) => {
      if (command.id === id) commands.push(command.argv)
      return null
    })
    await leave('POST', `/v1/units/${id}/exec`, { cmd: ['touch', '/ran'] }, async () => {
      await hasAsked('thaw', id)
    })
    release()
    await expect.poll(async () => (await unitOf(id)).state).toBe('running')
    await expect.poll(() => statusOf('unit.exec')).toEqual([499])
    expect(commands).toEqual([])
  })

  test('from a followed log ends the following', async () => {
    const { id } = await makeUnit(service, team, { cmd: ['sh', '-c', 'echo one; sleep infinity'] })
    const gone = new AbortController()
    const answer = await service.fetch('GET', `/v1/units/${id}/logs?follow=true`, {
      key: team.key,
      signal: gone.signal,
    })
    await answer.body?.getReader().read()
    gone.abort()
    await expect.poll(() => statusOf('unit.logs')).toEqual([499])
  })

  test('after it sent a whole file finds it written', async () => {
    const { id } = await makeUnit(service, team)
    const release = service.engine.hang('writeFile')
    await leave('PUT', `/v1/units/${id}/files?path=/data`, 'all of it', async () => {
      await hasAsked('writeFile', id)
    })
    release()
    const path = `/v1/units/${id}/files?path=/data`
    await expect
      .poll(async () => (await service.call('GET', path, { key: team.key })).body)
      .toMatchObject({ contentBase64: Buffer.from('all of it').toString('base64') })
  })

  test('in the middle of an upload leaves the file as it was', async () => {
    const { id } = await makeUnit(service, team)
    const path = `/v1/units/${id}/files?path=/data`
    await service.call('PUT', path, { key: team.key, body: 'as it was' })
    const socket = connect(service.port, '127.0.0.1')
    socket.write(
      `PUT ${path} HTTP/1.1\r\nhost: berth.test\r\nauthorization: Bearer ${team.key}\r\n` +
        'content-length: 1000\r\n\r\nhalf',
    )
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.destroy()
    await expect.poll(() => statusOf('unit.file.write')).toEqual([200, 499])
    expect((await service.call('GET', path, { key: team.key })).body).toMatchObject({
      contentBase64: Buffer.from('as it was').toString('base64'),
    })
  })
})

test('a server that stops first writes the audit rows of callers that have disconnected', async () => {
  const { app } = service
  const server = createServer(createApp({ ...app, clock: service.clock }))
  const baseUrl = await server.listen({ host: '127.0.0.1', port: 0 })
  const gone = new AbortController()
  const headers = { authorization: `Bearer ${team.key}`, 'x-request-id': 'gone-before-the-end' }
  let closed = false
  const closing = await app.db.transaction().execute(async (db) => {
    await sql`lock table audit in exclusive mode`.execute(db)
    const call = fetch(`${baseUrl}/v1/units`, { headers, signal: gone.signal })
    const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    await expect.poll(async () => (await waiting.execute(app.db)).rows.length).toBe(1)
    gone.abort()
    await expect(call).rejects.toThrow('abort')
    const ending = server.close().then(() => (closed = true))
    await new Promise((resolve) => setTimeout(resolve, 300))
    return { closedEarly: closed, ending }
  })
  expect(closing.closedEarly).toBe(false)
  await closing.ending
  const rows = await app.db
    .selectFrom('audit')
    .select('status')
    .where('request_id', '=', 'gone-before-the-end')
    .execute()
  expect(rows).toHaveLength(1)
})
