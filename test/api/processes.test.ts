// /v1/units/{id}/processes over HTTP: commands that outlive their calls (docs/processes.md).

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Process, ProcessList, ProcessOutputPage } from '../../src/contract/process.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { collectEvents, readEvents } from '../support/events.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Refused = { error: { code: string; message: string; details: unknown } }

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

const path = (id: string, rest = '') => `/v1/units/${id}/processes${rest}`
const call = async <T = Process>(method: string, url: string, body?: unknown) =>
  await service.call<T>(method, url, { key: team.key, body })
const start = async (cmd: string[], rest: object = {}, id = unit.id): Promise<Process> => {
  const { status, body } = await call('POST', path(id), { cmd, ...rest })
  expect([status, body]).toEqual([201, expect.anything()])
  return body
}
const get = async ({ unitId, id }: Process) => (await call('GET', path(unitId, `/${id}`))).body
const list = async (id: string) => (await call<ProcessList>('GET', path(id))).body.processes
const output = async ({ unitId, id }: Process, query = '') =>
  (await call<ProcessOutputPage>('GET', path(unitId, `/${id}/output${query}`))).body
const over = async (process: Process): Promise<Process> => {
  await expect.poll(async () => (await get(process)).state).not.toBe('running')
  return await get(process)
}
const follow = async ({ unitId, id }: Process, headers: Record<string, string> = {}) =>
  await service.fetch('GET', path(unitId, `/${id}/output?follow=true`), {
    key: team.key,
    headers: { accept: 'text/event-stream', ...headers },
  })

describe('a background process', () => {
  it('is returned as soon as it runs, and later shows its exit code and output', async () => {
    const process = await start(['sh', '-c', 'echo out; echo err >&2; exit 3'], { cwd: '/tmp' })
    expect(process).toMatchObject({
      unitId: unit.id,
      cmd: ['sh', '-c', 'echo out; echo err >&2; exit 3'],
      cwd: '/tmp',
      keepsAwake: false,
    })
    expect(process.id).toMatch(/^proc_[0-9a-f]{32}$/)
    expect(await over(process)).toMatchObject({ state: 'exited', exitCode: 3, output: { from: 0, to: 8 } })
    expect(await list(unit.id)).toContainEqual(await get(process))
    expect(await output(process)).toEqual({
      output: [
        { stream: 'stdout', data: 'out\n' },
        { stream: 'stderr', data: 'err\n' },
      ],
      next: 8,
      dropped: 0,
      state: 'exited',
      exitCode: 3,
    })
    expect(await output(process, '?after=5')).toMatchObject({ output: [{ data: 'rr\n' }], next: 8 })
    expect(await output(process, '?after=8')).toMatchObject({ output: [], next: 8 })
  })

  it('gets its environment and stdin, which are neither stored nor logged', async () => {
    const process = await start(['sh', '-c', 'cat; printenv TOKEN'], {
      env: { TOKEN: 'hidden-value' },
      stdin: 'hidden-input\n',
    })
    await over(process)
    expect((await output(process)).output).toEqual([
      { stream: 'stdout', data: 'hidden-input\nhidden-value\n' },
    ])
    const rows = await service.app.db
      .selectFrom('audit')
      .select(['action', 'target', 'status', 'input'])
      .execute()
    const started = rows.filter(({ action }) => action === 'process.start')
    expect(started.at(-1)).toMatchObject({
      target: unit.id,
      status: 201,
      input: { cmd: ['sh', '-c', 'cat; printenv TOKEN'], env: ['TOKEN'], stdinBytes: 13, keepsAwake: false },
    })
    expect(JSON.stringify(rows)).not.toContain('hidden-')
    expect(service.logged.join('')).not.toContain('hidden-')
  })

  it('is shown and audited without the passwords of its command', async () => {
    const process = await start(['sh', '-c', 'true', 'x', '--password', 'hunter2'])
    expect(process.cmd.at(-1)).toBe('***')
    expect(JSON.stringify(await list(unit.id))).not.toContain('hunter2')
    const rows = await service.app.db.selectFrom('audit').select('input').execute()
    expect(JSON.stringify(rows)).not.toContain('hunter2')
  })

  it('accepts signals with an audit row each, and refuses them once it has exited', async () => {
    const process = await start(['sleep', 'infinity'])
    const at = path(unit.id, `/${process.id}/signal`)
    expect(await call('POST', at, { signal: 'STOP' })).toMatchObject({
      status: 200,
      body: { state: 'running' },
    })
    expect(await call('POST', at, {})).toMatchObject({ status: 200 })
    expect(await over(process)).toMatchObject({ state: 'exited', exitCode: 143 })
    expect(await call<Refused>('POST', at, { signal: 'INT' })).toMatchObject({
      status: 409,
      body: { error: { code: 'invalid_state' } },
    })
    const rows = await service.app.db
      .selectFrom('audit')
      .select(['input', 'status'])
      .where('action', '=', 'process.signal')
      .orderBy('id')
      .execute()
    expect(rows.map(({ input, status }) => [input, status])).toEqual([
      [{ processId: process.id, signal: 'STOP' }, 200],
      [{ processId: process.id, signal: 'TERM' }, 200],
      [{ processId: process.id, signal: 'INT' }, 409],
    ])
  })

  it('is started once for an Idempotency-Key, also when the answer was lost', async () => {
    const body = { cmd: ['sh', '-c', 'echo x >> /tmp/keyed; sleep infinity'] }
    const send = async (key: string) =>
      await service.call<Process>('POST', path(unit.id), {
        key: team.key,
        body,
        headers: { 'idempotency-key': key },
      })
    const [first, again] = [await send('build-1'), await send('build-1')]
    expect([first.status, again.status, again.body]).toEqual([201, 201, first.body])
    service.engine.fail('startProcess', 'engine_away', { when: 'after' })
    expect((await send('build-2')).status).toBe(503)
    const { status, body: made } = await send('build-2')
    expect(status).toBe(201)
    const mine = (await list(unit.id)).filter(({ cmd }) => cmd[2] === body.cmd[2])
    expect(mine.map(({ id }) => id)).toEqual([first.body.id, made.id])
  })

  it('is killed and deleted by DELETE', async () => {
    const process = await start(['sleep', 'infinity'])
    expect(await call('DELETE', path(unit.id, `/${process.id}`))).toMatchObject({ status: 200 })
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/output'],
      ['DELETE', ''],
    ] as const)
      expect((await call<Refused>(method, path(unit.id, `/${process.id}${rest}`))).status).toBe(404)
  })

  it.each([
    [{}, 'cmd'],
    [{ cmd: 'ls' }, 'must be an array of arguments'],
    [{ cmd: [''] }, 'the first item must name a command'],
    [{ cmd: ['ls'], cwd: 'app' }, 'must be absolute'],
    [{ cmd: ['ls'], env: { 'A=B': 'c' } }, 'a name must begin'],
    [{ cmd: ['ls'], env: { A: { secret: 'B' } } }, 'env.A'],
    [{ cmd: ['ls'], stdin: 'é'.repeat(40_000) }, 'write more into a file'],
    [{ cmd: ['ls'], timeoutMs: 5 }, 'the fields here are cmd, cwd, env, stdin, takesInput'],
  ])('is refused with the body %j', async (body, message) => {
    const answer = await call<Refused>('POST', path(unit.id), body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'validation'])
    expect(answer.body.error.message).toContain(message)
  })

  it.each(['?after=-1', '?after=x', '?maxBytes=1', '?maxBytes=99999999', '?follow=maybe', '?since=1'])(
    'refuses the output query %s',
    async (query) => {
      const process = await start(['true'])
      const answer = await call<Refused>('GET', path(unit.id, `/${process.id}/output${query}`))
      expect([answer.status, answer.body.error.code]).toEqual([400, 'validation'])
    },
  )
})

describe('the output of a background process', () => {
  it('can be followed from any position, and resumed after a disconnect without loss or duplicates', async () => {
    const process = await start(['sh', '-c', 'echo one; sleep 1; echo two >&2; sleep 1; echo three; exit 4'])
    const events = readEvents(await follow(process))
    const first = await events.next()
    expect(first.value).toEqual({ event: 'stdout', id: '4', data: { data: 'one\n' } })
    await events.return(undefined)
    service.clock.advance(3 * SECOND)
    await over(process)
    const rest = await collectEvents(await follow(process, { 'last-event-id': '4' }))
    expect(rest).toEqual([
      { event: 'stderr', id: '8', data: { data: 'two\n' } },
      { event: 'stdout', id: '14', data: { data: 'three\n' } },
      { event: 'end', id: undefined, data: { state: 'exited', exitCode: 4 } },
    ])
    const refused = await follow(process, { 'last-event-id': 'four' })
    expect(refused.status).toBe(400)
  })

  it('can be followed for a limited time, and includes all earlier output', async () => {
    const process = await start(['sh', '-c', 'echo one; sleep infinity'])
    await expect.poll(async () => (await get(process)).output.to).toBe(4)
    // The time is over before the first byte comes.
    service.engine.delay('followProcess', 500, { times: 1 })
    const at = path(unit.id, `/${process.id}/output?follow=true&followMs=`)
    const followed = await collectEvents(await service.fetch('GET', `${at}0`, { key: team.key }))
    expect(followed).toEqual([
      { event: 'stdout', id: '4', data: { data: 'one\n' } },
      { event: 'end', id: undefined, data: { state: 'running', exitCode: null } },
    ])
    await call('POST', path(unit.id, `/${process.id}/signal`), { signal: 'KILL' })
    const events = await collectEvents(await service.fetch('GET', `${at}3600000`, { key: team.key }))
    expect(events.at(-1)).toMatchObject({ event: 'end', data: { state: 'exited', exitCode: 137 } })
    const alone = await call<Refused>('GET', path(unit.id, `/${process.id}/output?followMs=5`))
    expect(alone.body.error.message).toContain('follow=true')
  })

  it('keeps characters whole across pages, and encodes other bytes as base64', async () => {
    const text = 'é✓😀'.repeat(500)
    await service.call('POST', `/v1/units/${unit.id}/files`, {
      key: team.key,
      body: { path: '/tmp/text', contentBase64: Buffer.from(text).toString('base64') },
    })
    const process = await start(['cat', '/tmp/text'])
    await over(process)
    let said = ''
    for (let after = 0; ; ) {
      const page = await output(process, `?after=${after}&maxBytes=1025`)
      if (page.output.length === 0) break
      for (const { data, encoding } of page.output) {
        expect(encoding).toBeUndefined()
        said += data
      }
      after = page.next
    }
    expect(said).toBe(text)

    await service.call('POST', `/v1/units/${unit.id}/files`, {
      key: team.key,
      body: { path: '/tmp/bytes', contentBase64: Buffer.from([0xff, 0xc3]).toString('base64') },
    })
    const bytes = await start(['cat', '/tmp/bytes'])
    await over(bytes)
    expect((await output(bytes)).output).toEqual([
      { stream: 'stdout', data: '/w==', encoding: 'base64' },
      { stream: 'stdout', data: 'ww==', encoding: 'base64' },
    ])
  })

  it('keeps the end of a long output, and says how much was dropped', async () => {
    const process = await start(['head', '-c', '3000000', '/dev/zero'])
    const { output: kept } = await over(process)
    expect(kept.to).toBe(3_000_000)
    expect(kept.from).toBeGreaterThan(1_000_000)
    const page = await output(process)
    expect(page.dropped).toBe(kept.from)
    expect(page.next).toBeGreaterThan(kept.from)
  })
})

describe('a background process and its unit', () => {
  const stateOf = async (id: string) => (await call<Unit>('GET', `/v1/units/${id}`)).body.state

  it('pauses while the unit is frozen, can be read without a wake, and continues with the unit', async () => {
    const { id } = await makeUnit(service, team, { sleep: '1h' })
    const process = await start(['sh', '-c', 'echo begun; sleep 90; echo went on'], {}, id)
    await expect.poll(async () => (await output(process)).next).toBe(6)
    await call('POST', `/v1/units/${id}/sleep`, { sleep: '1h', now: true })
    await expect.poll(async () => await stateOf(id)).toBe('sleeping')
    service.clock.advance(2 * MINUTE)
    expect(await get(process)).toMatchObject({ state: 'running', output: { to: 6 } })
    expect((await output(process)).output).toEqual([{ stream: 'stdout', data: 'begun\n' }])
    expect(await stateOf(id)).toBe('sleeping')
    await call('POST', `/v1/units/${id}/start`)
    expect(await over(process)).toMatchObject({ state: 'exited', exitCode: 0 })
    expect((await output(process)).output).toEqual([{ stream: 'stdout', data: 'begun\nwent on\n' }])
  })

  it('wakes the unit for a signal, and for a DELETE while it runs', async () => {
    const { id } = await makeUnit(service, team)
    const [one, other] = [
      await start(['sleep', 'infinity'], {}, id),
      await start(['sleep', 'infinity'], {}, id),
    ]
    for (const wake of [
      async () => await call('POST', path(id, `/${one.id}/signal`), { signal: 'TERM' }),
      async () => await call('DELETE', path(id, `/${other.id}`)),
    ]) {
      await call('POST', `/v1/units/${id}/sleep`, { sleep: '1h', now: true })
      await expect.poll(async () => await stateOf(id)).toBe('sleeping')
      expect((await wake()).status).toBe(200)
      expect(await stateOf(id)).toBe('running')
    }
    expect(await over(one)).toMatchObject({ exitCode: 143 })
    expect(await list(id)).toHaveLength(1)
  })

  it('ends when the unit is stopped, can still be read, and cannot be started there', async () => {
    const { id } = await makeUnit(service, team)
    const process = await start(['sh', '-c', 'echo begun; sleep infinity'], {}, id)
    await expect.poll(async () => (await output(process)).next).toBe(6)
    await call('POST', `/v1/units/${id}/stop`)
    expect(await get(process)).toMatchObject({ state: 'exited', exitCode: 137 })
    expect((await output(process)).output).toEqual([{ stream: 'stdout', data: 'begun\n' }])
    const refused = await call<Refused>('POST', path(id), { cmd: ['true'] })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'invalid_state'])
    await call('DELETE', `/v1/units/${id}`)
    expect((await call<Refused>('GET', path(id))).status).toBe(409)
  })

  it('is lost in a fork of the unit, and keeps running in the source', async () => {
    const { id } = await makeUnit(service, team)
    const process = await start(['sleep', 'infinity'], {}, id)
    const { body } = await call<{ units: Unit[] }>('POST', `/v1/units/${id}/fork`, { name: 'copied' })
    const copy = body.units[0]?.id ?? ''
    expect(await list(copy)).toMatchObject([
      { id: process.id, unitId: copy, state: 'lost', cmd: process.cmd },
    ])
    expect(await get(process)).toMatchObject({ state: 'running' })
  })

  it('is limited to 64 running at once in a unit', async () => {
    const { id } = await makeUnit(service, team)
    const all = await Promise.all(
      Array.from({ length: 64 }, async () => await start(['sleep', 'infinity'], {}, id)),
    )
    const refused = await call<Refused>('POST', path(id), { cmd: ['true'] })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    await call('DELETE', path(id, `/${all[0]?.id}`))
    await start(['true'], {}, id)
  })

  it('keeps the unit awake for at most an hour when asked to, and otherwise not', async () => {
    const sleeping = async (body: object) => {
      const { id } = await makeUnit(service, team, { sleep: '2m' })
      await start(['sleep', 'infinity'], body, id)
      return id
    }
    const [awake, idle] = [await sleeping({ keepsAwake: true }), await sleeping({})]
    service.clock.advance(3 * MINUTE)
    await expect.poll(async () => await stateOf(idle)).toBe('sleeping')
    for (let minutes = 0; minutes < 50; minutes += 2) {
      service.clock.advance(2 * MINUTE)
      await expect
        .poll(async () => {
          const { body } = await call<Unit>('GET', `/v1/units/${awake}`)
          return body.state === 'running' && Date.parse(body.sleepsAt ?? '') > service.clock.now().getTime()
        })
        .toBe(true)
    }
    service.clock.advance(15 * MINUTE)
    await expect.poll(async () => await stateOf(awake)).toBe('sleeping')
  })

  it('gets what is written to its input, until the input ends', async () => {
    const process = await start(['cat'], { stdin: 'first ', takesInput: true })
    const write = async (body: object) =>
      await call<{ taken: number } & Refused>('POST', path(unit.id, `/${process.id}/input`), body)
    expect(process.takesInput).toBe(true)
    expect((await write({ data: 'hidden-word ✓ ' })).body).toEqual({ taken: 16 })
    expect((await write({ data: '/w==', encoding: 'base64' })).body).toEqual({ taken: 1 })
    expect(await write({ data: '*', encoding: 'base64' })).toMatchObject({ status: 400 })
    expect((await write({ end: true })).body).toEqual({ taken: 0 })
    expect(await over(process)).toMatchObject({ exitCode: 0, takesInput: false, output: { to: 23 } })
    expect(await write({ data: 'late' })).toMatchObject({ status: 409 })
    const rows = await service.app.db
      .selectFrom('audit')
      .select('input')
      .where('action', '=', 'process.input')
      .execute()
    expect(rows.map(({ input }) => input)).toContainEqual({ processId: process.id, bytes: 16 })
    expect(JSON.stringify(rows)).not.toContain('hidden-word')
  })

  it('that was started without open input takes none', async () => {
    const process = await start(['sleep', 'infinity'])
    const written = await call<Refused>('POST', path(unit.id, `/${process.id}/input`), { data: 'x' })
    expect([written.status, written.body.error.message]).toEqual([
      409,
      expect.stringContaining('without `takesInput`'),
    ])
  })

  it('keeps its unit awake as long as a caller renews that, and not when it is taken back', async () => {
    const { id } = await makeUnit(service, team, { sleep: '2m' })
    const process = await start(['sleep', 'infinity'], {}, id)
    const renew = async (body?: object) =>
      (await call('POST', path(id, `/${process.id}/keep-awake`), body)).body
    expect(process.awakeUntil).toBe(null)
    for (let minutes = 0; minutes < 120; minutes += 20) {
      const { awakeUntil } = await renew(minutes === 0 ? undefined : { forMs: 30 * MINUTE })
      expect(Date.parse(awakeUntil ?? '')).toBeGreaterThan(service.clock.now().getTime() + 29 * MINUTE)
      service.clock.advance(20 * MINUTE)
      await expect
        .poll(async () => {
          const { body } = await call<Unit>('GET', `/v1/units/${id}`)
          return body.state === 'running' && Date.parse(body.sleepsAt ?? '') > service.clock.now().getTime()
        })
        .toBe(true)
    }
    await renew({ forMs: 0 })
    service.clock.advance(3 * MINUTE)
    await expect.poll(async () => await stateOf(id)).toBe('sleeping')
    // Taking it back again wakes nothing.
    expect((await call('POST', path(id, `/${process.id}/keep-awake`), { forMs: 0 })).status).toBe(200)
    expect(await stateOf(id)).toBe('sleeping')
    await renew({ forMs: MINUTE })
    expect(await stateOf(id)).toBe('running')
  })

  it('looks unknown to another team', async () => {
    const process = await start(['sleep', 'infinity'])
    const other = await makeTeam(service)
    const theirs = await makeUnit(service, other)
    for (const rest of ['', '/output']) {
      const found = await service.call<Refused>('GET', path(theirs.id, `/${process.id}${rest}`), {
        key: other.key,
      })
      expect(found.status).toBe(404)
    }
  })
})

describe('a background process during trouble of the engine', () => {
  it('gets an error as an answer, and keeps running', async () => {
    const process = await start(['sh', '-c', 'echo begun; sleep infinity'])
    await expect.poll(async () => (await output(process)).next).toBe(6)
    const events = readEvents(await follow(process))
    await events.next()
    service.engine.crash()
    expect((await events.next()).value).toMatchObject({
      event: 'error',
      data: { error: { code: 'unavailable' } },
    })
    expect(await get(process)).toMatchObject({ state: 'running' })
    service.engine.fail('startProcess', 'process_refused')
    const refused = await call<Refused>('POST', path(unit.id), { cmd: ['true'] })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    service.engine.fail('processes', 'internal')
    expect((await call<Refused>('GET', path(unit.id))).status).toBe(502)
  })
})
