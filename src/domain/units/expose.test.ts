// Publishing: which URL a unit gets, when the URL changes, and when the unit restarts for it (reliability I26).

import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createBody,
  createTestDomain,
  eventually,
  makeUnit,
  type TestDomain,
} from '../../../test/support/domain.ts'
import { findUnsettled } from '../../../test/support/invariants.ts'
import { parseEndpointLabel } from '../../contract/endpoint-label.ts'
import { exposeSchema } from '../../contract/endpoint.ts'
import { findEndpointRoutes } from '../../store/endpoints.ts'
import type { Caller } from '../credentials/caller.ts'
import { createUnits } from './create.ts'
import { destroyUnit } from './destroy.ts'
import { execInUnit } from './exec.ts'
import { exposeUnit } from './expose.ts'
import { getUnit } from './get.ts'
import { reconcileMachines, resumeOperations } from './reconcile.ts'
import { sleepUnit } from './sleep.ts'
import { startUnit } from './start.ts'
import { stopUnit } from './stop.ts'

let domain: TestDomain
let caller: Caller
beforeAll(async () => {
  domain = await createTestDomain()
})
beforeEach(async () => {
  caller = await domain.makeCaller()
})
afterAll(async () => await domain.close())

const expose = (id: string, body: Record<string, unknown>) =>
  exposeUnit(domain.app, caller, id, exposeSchema.parse(body))
const get = (id: string) => getUnit(domain.app, caller, id)
const labelOf = (url: string) => new URL(url).hostname.split('.')[0] ?? ''
const nameIn = (url: string) => parseEndpointLabel(labelOf(url))?.name ?? 'no name'
const isLive = async (url: string) => (await findEndpointRoutes(domain.app.db, [nameIn(url)])).length === 1
const starts = (id: string) =>
  domain.engine.calls.filter((call) => call.id === id && call.operation === 'start').length

describe('a published unit', () => {
  it('has one URL, private by default, and shows it', async () => {
    const { id } = await makeUnit(domain.app, caller, { name: 'shop' })
    const { url, mode, port, warning } = await expose(id, { port: 3000 })
    expect({ mode, port, warning }).toEqual({ mode: 'private', port: 3000, warning: undefined })
    expect(url).toMatch(/^https:\/\/shop-[a-z2-7]{10}-[a-z2-7]{26}\.berth\.localhost:7443$/)
    const { endpoints } = await get(id)
    expect(endpoints).toEqual([
      { id: expect.stringMatching(/^ep_/), port: 3000, protocol: 'http', mode, url },
    ])
  })

  it('keeps its URL and its run when the same request is repeated', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const first = await expose(id, { port: 3000, mode: 'public' })
    expect(await expose(id, { port: 3000 })).toEqual(first)
    expect(await expose(id, { port: 3000, mode: 'public' })).toEqual(first)
    expect(starts(id)).toBe(1)
  })

  it('keeps its URL when it moves to another port, and is restarted with a warning', async () => {
    const { id, startedAt } = await makeUnit(domain.app, caller)
    const { url } = await expose(id, { port: 3000 })
    const moved = await expose(id, { port: 4000 })
    expect(moved).toMatchObject({ url, port: 4000, mode: 'private' })
    expect(moved.warning).toMatch(/leads to port 4000 instead of port 3000\. The unit was restarted/)
    const unit = await get(id)
    expect(unit).toMatchObject({ state: 'running', stoppedReason: null, endpoints: [{ port: 4000, url }] })
    expect(unit.startedAt).not.toBe(startedAt)
    expect(starts(id)).toBe(2)
    // Its process was asked to stop, not killed.
    expect(domain.engine.calls.some((call) => call.id === id && call.operation === 'stop')).toBe(true)
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
  })

  it('gets a new URL for a new mode or a rotation, and the old one stops working at once', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const urls = [(await expose(id, { port: 3000, mode: 'public' })).url]
    for (const body of [{ mode: 'private' }, { rotate: true }, { mode: 'public' }, { rotate: true }]) {
      const { url } = await expose(id, { port: 3000, ...body })
      expect(urls.map(nameIn)).not.toContain(nameIn(url))
      for (const old of urls) expect(await isLive(old)).toBe(false)
      expect(await isLive(url)).toBe(true)
      urls.push(url)
    }
    expect((await get(id)).endpoints).toHaveLength(1)
    expect(starts(id)).toBe(1)
  })

  it('has a TCP endpoint over TLS beside its URL, without a password', async () => {
    const { id } = await makeUnit(domain.app, caller, { name: 'db' })
    await expose(id, { port: 8080, mode: 'public' })
    const { url } = await expose(id, { port: 5432, protocol: 'postgres', mode: 'public' })
    expect(url).toMatch(/^postgres:\/\/db-[a-z2-7]{10}\.berth\.localhost:7443$/)
    expect((await get(id)).endpoints).toMatchObject([{ protocol: 'http' }, { protocol: 'postgres', url }])
    // A port keeps the protocol it was published with.
    expect(await expose(id, { port: 5432 })).toMatchObject({ url })
    const mysql = await expose(id, { port: 3306, protocol: 'mysql' })
    expect(mysql.url).toBe(url.replace('postgres:', 'mysql:').replace('7443', '7306'))
    expect(mysql.warning).toContain('instead of port 5432')
    expect((await get(id)).endpoints).toHaveLength(2)
    expect(starts(id)).toBe(1)
  })

  it('shows public addresses where a proxy stands in front of the gateway', async () => {
    const behind = await createTestDomain({
      BERTH_DOMAIN: 'Apps.Example.com',
      BERTH_GATEWAY_PUBLIC_URL: 'https://apps.example.com',
      BERTH_GATEWAY_PUBLIC_TLS: '443',
      BERTH_GATEWAY_PUBLIC_MYSQL: '3306',
    })
    try {
      const mine = await behind.makeCaller()
      const { id } = await makeUnit(behind.app, mine, { name: 'web' })
      const at = async (body: Record<string, unknown>) =>
        (await exposeUnit(behind.app, mine, id, exposeSchema.parse({ mode: 'public', ...body }))).url
      expect(await at({ port: 80 })).toMatch(/^https:\/\/web-[a-z2-7]{10}\.apps\.example\.com$/)
      expect(await at({ port: 1, protocol: 'redis' })).toMatch(/^rediss:\/\/web-\w+\.apps\.example\.com:443$/)
      expect(await at({ port: 1, protocol: 'mysql' })).toMatch(/^mysql:\/\/web-\w+\.apps\.example\.com:3306$/)
    } finally {
      await behind.close()
    }
  })

  it('loses its URL when it is destroyed, and no unit gets that URL again', async () => {
    const { id, name } = await makeUnit(domain.app, caller)
    const { url } = await expose(id, { port: 3000 })
    await destroyUnit(domain.app, caller, id)
    expect(await isLive(url)).toBe(false)
    expect((await get(id)).endpoints).toEqual([])
    const other = await domain.makeCaller()
    const next = await makeUnit(domain.app, other, { name })
    const theirs = await exposeUnit(domain.app, other, next.id, exposeSchema.parse({ port: 3000 }))
    expect(nameIn(theirs.url)).not.toBe(nameIn(url))
    const again = sql`insert into endpoints (id, unit_id, team_id, port, protocol, mode, name, created_at)
      select 'ep_0', ${next.id}, team_id, port, protocol, 'public', name, created_at
      from endpoints where name = ${nameIn(url)}`.execute(domain.app.db)
    await expect(again).rejects.toThrow(/endpoints_name_key/)
  })
})

describe('publishing', () => {
  it('is refused for a port that the unit does not declare, and lists the declared ones', async () => {
    const { id } = await makeUnit(domain.app, caller, { ports: [3000, 4000], expose: 4000 })
    await expect(expose(id, { port: 80 })).rejects.toMatchObject({
      status: 400,
      details: [{ path: 'port', message: 'must be a port that the unit declares: 3000, 4000' }],
    })
    for (const port of [3000, 4000]) expect(await expose(id, { port })).toMatchObject({ port })
  })

  it('wakes a sleeping unit, and counts as a use', async () => {
    const { id } = await makeUnit(domain.app, caller, { sleep: '1m' })
    await sleepUnit(domain.app, caller, id, { sleep: '1m', stack: false, now: true })
    domain.clock.advance(90_000)
    await expose(id, { port: 3000 })
    const { state, sleepsAt } = await get(id)
    expect(state).toBe('running')
    expect(Date.parse(sleepsAt ?? '') - domain.clock.now().getTime()).toBeGreaterThan(59_000)
    domain.clock.advance(30_000)
    await expose(id, { port: 3000 })
    expect(Date.parse((await get(id)).sleepsAt ?? '') - Date.parse(sleepsAt ?? '')).toBeGreaterThan(29_000)
  })

  it('does not wake a sleeping unit when it is refused', async () => {
    const { id } = await makeUnit(domain.app, caller, { ports: [3000] })
    await sleepUnit(domain.app, caller, id, { sleep: '1m', stack: false, now: true })
    await expect(expose(id, { port: 80 })).rejects.toMatchObject({ status: 400 })
    expect((await get(id)).state).toBe('sleeping')
  })

  it('leaves a stopped unit stopped', async () => {
    const { id } = await makeUnit(domain.app, caller)
    await stopUnit(domain.app, caller, id)
    const first = await expose(id, { port: 3000 })
    const moved = await expose(id, { port: 4000 })
    expect(moved.url).toBe(first.url)
    expect(moved.warning).not.toContain('restarted')
    expect(await get(id)).toMatchObject({ state: 'stopped', endpoints: [{ port: 4000 }] })
  })

  it('is refused for a destroyed unit and for the unit of another team', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const other = await domain.makeCaller()
    await expect(exposeUnit(domain.app, other, id, exposeSchema.parse({ port: 3000 }))).rejects.toMatchObject(
      { status: 403 },
    )
    expect((await get(id)).endpoints).toEqual([])
    await destroyUnit(domain.app, caller, id)
    await expect(expose(id, { port: 3000 })).rejects.toMatchObject({ status: 409, code: 'invalid_state' })
  })

  it('leaves one URL after concurrent requests', async () => {
    const { id } = await makeUnit(domain.app, caller)
    const answers = await Promise.all(
      [3000, 3000, 4000, 4000].map((port) => expose(id, { port, rotate: port === 4000 })),
    )
    expect(answers.map(({ port }) => port)).toEqual([3000, 3000, 4000, 4000])
    const { state, endpoints } = await eventually(domain.app, caller, id, 'running')
    expect(state).toBe('running')
    expect(endpoints).toHaveLength(1)
    expect(answers.map(({ url }) => url)).toContain(endpoints[0]?.url)
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
  })

  it('leaves the unit asleep with its disk when the restart fails, and the next try starts it', async () => {
    const { id } = await makeUnit(domain.app, caller)
    await expose(id, { port: 3000 })
    domain.engine.fail('start', 'start_failed', { times: 1 })
    await expect(expose(id, { port: 4000 })).rejects.toMatchObject({ status: 502 })
    expect(await get(id)).toMatchObject({
      state: 'sleeping',
      stoppedReason: 'provider',
      endpoints: [{ port: 4000 }],
    })
    await expose(id, { port: 4000 })
    expect(await get(id)).toMatchObject({ state: 'running', error: null })
  })

  it('leaves no earlier run behind when neither the stop nor its undo succeeds', async () => {
    const { id } = await makeUnit(domain.app, caller)
    await expose(id, { port: 3000 })
    domain.faults.set('restart.end.before', 'error').set('restart.end.undo.before', 'error')
    await expect(expose(id, { port: 4000 })).rejects.toThrow('a test wanted an error')
    expect((await get(id)).state).toBe('sleeping')
    domain.clock.advance(11_000)
    await reconcileMachines(domain.app)
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
  })

  it('completes after a crash of the server during the restart', async () => {
    const { id } = await makeUnit(domain.app, caller)
    await expose(id, { port: 3000 })
    domain.faults.set('restart.end.after', 'crash')
    void expose(id, { port: 4000 }).catch(() => {})
    await eventually(domain.app, caller, id, 'starting')
    await expect.poll(() => domain.faults.size).toBe(0)
    await resumeOperations(domain.restarted())
    expect(await eventually(domain.app, caller, id, 'running')).toMatchObject({ endpoints: [{ port: 4000 }] })
    expect(await findUnsettled(domain.app, domain.engine)).toEqual([])
  })
})

describe('a create that publishes', () => {
  const create = async (spec: Record<string, unknown>, mode = 'public') =>
    await createUnits(domain.app, caller, createBody(spec, { expose: mode }))

  it('returns the URL of its only port or of the exposed one', async () => {
    for (const spec of [{ ports: [8080] }, { ports: [1, 8080], expose: 8080 }, { expose: 8080 }]) {
      const { units, outputs } = await create({ name: 'app', ...spec })
      expect(units[0]?.endpoints).toMatchObject([{ port: 8080, protocol: 'http', mode: 'public' }])
      expect(outputs).toEqual({ URL: units[0]?.endpoints[0]?.url })
    }
    const { outputs } = await create({ ports: [8080] }, 'private')
    expect(parseEndpointLabel(labelOf(outputs['URL'] ?? ''))?.secret).toMatch(/^[a-z2-7]{26}$/)
  })

  it.each([
    [{}, 'no port is declared'],
    [{ ports: [1, 2] }, '2 ports are declared'],
  ])('is refused without a port to publish: %j', async (spec, message) => {
    await expect(create(spec)).rejects.toMatchObject({
      status: 400,
      details: [{ path: 'spec.expose', message: expect.stringContaining(message) }],
    })
  })

  it('is refused when a generated secret is called URL', async () => {
    const spec = { ports: [8080], env: { TOKEN: { secret: 'URL' } } }
    await expect(create(spec)).rejects.toMatchObject({ status: 400, details: [{ path: 'expose' }] })
    const { outputs } = await create({ ...spec, env: { TOKEN: { secret: 'OTHER' } } })
    expect(Object.keys(outputs).toSorted()).toEqual(['OTHER', 'URL'])
  })

  it('retires its URL when it fails', async () => {
    domain.engine.fail('start', 'start_failed', { times: 1 })
    await expect(create({ name: 'broken', ports: [8080] })).rejects.toMatchObject({ status: 502 })
    const rows = await domain.app.db
      .selectFrom('endpoints')
      .select('retired_at')
      .where('team_id', '=', caller.teamId)
      .execute()
    expect(rows).toEqual([{ retired_at: expect.any(Date) }])
  })
})

describe('the placeholder {{self:host}}', () => {
  const env = { HOST: 'https://{{self:host}}/' }
  const hostIn = async (id: string) => {
    const cmd = ['printenv', 'HOST']
    return (await execInUnit(domain.app, caller, id, { cmd, timeoutMs: 5000 })).stdout.trim()
  }

  it('is the host of the URL of the create, or localhost without one', async () => {
    const body = createBody({ ports: [8080], env }, { expose: 'private' })
    const { units, outputs } = await createUnits(domain.app, caller, body)
    const { hostname } = new URL(outputs['URL'] ?? '')
    expect(await hostIn(units[0]?.id ?? '')).toBe(`https://${hostname}/`)
    const alone = await makeUnit(domain.app, caller, { env })
    expect(await hostIn(alone.id)).toBe('https://localhost/')
  })

  it('restarts the unit for each new host', async () => {
    const { id } = await makeUnit(domain.app, caller, { env })
    for (const body of [{ port: 80 }, { port: 80, rotate: true }, { port: 80, mode: 'public' }]) {
      const before = starts(id)
      const { url, warning } = await expose(id, body)
      expect(warning).toContain('restarted with its new host')
      expect(starts(id)).toBe(before + 1)
      expect(await hostIn(id)).toBe(`https://${new URL(url).hostname}/`)
    }
    const before = starts(id)
    await expose(id, { port: 80 })
    await expose(id, { port: 5432, protocol: 'postgres' })
    expect(starts(id)).toBe(before)
  })

  it('of a stopped unit is updated at its next start', async () => {
    const { id } = await makeUnit(domain.app, caller, { env })
    await stopUnit(domain.app, caller, id)
    const { url } = await expose(id, { port: 80 })
    await startUnit(domain.app, caller, id)
    expect(await hostIn(id)).toBe(`https://${new URL(url).hostname}/`)
  })
})
