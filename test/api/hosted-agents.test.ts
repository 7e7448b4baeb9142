// Hosted agents in the server: what a person sets in a session, what the server then does at the vendor's queue, which is
// a control plane in memory that the vendor's own library asks, and what people see of it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serveHostedAgents } from '../../src/agents/serve-hosted.ts'
import type {
  HostedAnswer,
  HostedChanged,
  HostedDeleted,
  HostedList,
} from '../../src/contract/hosted-agents.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { MINUTE } from '../../src/lib/clock.ts'
import { everythingKept } from '../support/kept.ts'
import { makeSharedTeam } from '../support/make.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let agents: ManagedAgents
let team: Awaited<ReturnType<typeof makeSharedTeam>>
let workDir: string
let controllers: ReturnType<typeof serveHostedAgents>

beforeEach(async () => {
  ;[service, agents, workDir] = await Promise.all([
    startService(),
    startManagedAgents(),
    mkdtemp(join(tmpdir(), 'hosted-agents-')),
  ])
  team = await makeSharedTeam(service)
  controllers = serveHere()
})
afterEach(async () => {
  await controllers.stop()
  expect(agents.faults).toEqual([])
  await Promise.all([agents.close(), service.close(), rm(workDir, { recursive: true })])
})

function serveHere() {
  return serveHostedAgents(service.app, {
    url: service.baseUrl,
    vendorUrls: { claude: agents.url },
    workDir,
    timing: {
      idleMs: 100,
      reclaimMs: 300,
      strandedMs: 50,
      pauses: { empty: 20, failed: 20, mostFailed: 100, sweep: 100, full: 50 },
    },
  })
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
  const headers = { origin: service.baseUrl, 'x-berth-team': team.id }
  return await service.call<T>(method, path, { cookie: team.owner.cookie, headers, body })
}

const add = async (more: object = {}) => {
  const body = { environment: agents.environment, environmentKey: agents.key, image: 'node:22', ...more }
  const answer = await ask<HostedChanged>('POST', '/v1/hosted-agents', body)
  expect(answer.status).toBe(201)
  return answer.body.environment
}
const shown = async () => {
  const { environments } = (await ask<HostedList>('GET', '/v1/hosted-agents')).body
  return environments[0]
}
const sessionsOf = async (id: string) =>
  (await ask<HostedAnswer>('GET', `/v1/hosted-agents/${id}`)).body.sessions
const stateNow = async () => (await shown())?.state
const units = async () =>
  (await ask<{ units: { id: string; name: string }[] }>('GET', '/v1/units')).body.units
/** What the controllers did. */
const audited = async () =>
  (
    await ask<{ events: { userAgent: string | null }[] }>('GET', '/v1/audit?changes=true&limit=100')
  ).body.events.filter(({ userAgent }) => userAgent?.includes('berth-agents'))
const write = (content: string) => ({ name: 'write', input: { file_path: 'a.txt', content } })
const read = { name: 'read', input: { file_path: 'a.txt' } }

describe('an environment', () => {
  it('is served from the moment its credential is given, and its sessions are seen with turns, units and costs', {
    timeout: 60_000,
  }, async () => {
    const { id, key } = await add()
    await expect.poll(stateNow).toBe('waiting')
    const session = agents.begin()
    await agents.call(session, write('first'))
    const [unit] = await units()
    expect(await sessionsOf(id)).toMatchObject([
      { id: session.id, state: 'working', turns: 1, unit: { id: unit?.id, state: 'running' } },
    ])
    expect((await shown())?.working).toBe(1)
    agents.endTurn(session)
    await expect.poll(async () => (await sessionsOf(id))[0]?.state).toBe('waiting')
    agents.queue(session)
    expect((await agents.call(session, read)).text).toBe('first')
    await expect.poll(async () => (await sessionsOf(id))[0]?.turns).toBe(2)
    // Less than its unit may be idle, and more than a heartbeat takes to prove what it cost.
    service.clock.advance(MINUTE / 2)
    await expect.poll(async () => (await sessionsOf(id))[0]?.costCents).toBeGreaterThan(0)
    agents.terminate(session)
    await expect.poll(units).toEqual([])
    await expect.poll(async () => (await sessionsOf(id))[0]?.state).toBe('ended')
    const { body } = await ask<{ events: { action: string; userAgent: string; credential: object }[] }>(
      'GET',
      '/v1/audit?action=unit.create',
    )
    expect(body.events[0]).toMatchObject({
      userAgent: expect.stringContaining(`claude/${session.id}`),
      credential: { id: key.id },
    })
  })

  it('is kept with sealed credentials, which no answer, row or log line has', async () => {
    const { id } = await add()
    await agents.call(agents.begin(), write('x'))
    const answers = [await ask('GET', '/v1/hosted-agents'), await ask('GET', `/v1/hosted-agents/${id}`)]
    const all = (await everythingKept(service)) + JSON.stringify(answers)
    expect(all).toContain(agents.environment)
    expect(all).not.toContain(agents.key)
    expect(all).not.toMatch(/berth_live_[A-Za-z0-9_-]{40}/)
  })

  it('with a wrong credential is refused with a sentence, and works with the right one', async () => {
    const { id } = await add({ environmentKey: 'sk-ant-oat01-of-another' })
    await expect.poll(stateNow).toBe('refused')
    const { note } = (await shown()) ?? {}
    expect(note).toMatch(/environment key was refused/)
    const asked = agents.polls
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(agents.polls).toBe(asked)
    await ask('PATCH', `/v1/hosted-agents/${id}`, { environmentKey: agents.key })
    expect(await agents.call(agents.begin(), write('x'))).toMatchObject({ isError: false })
    expect(await shown()).toMatchObject({ state: 'waiting', note: null })
  })

  it.each([
    ['is of another environment', 403, /environment key was refused \(403\)/],
    ['does not fit its id', 404, /knows no such environment/],
    ['is revoked', 401, /environment key was refused \(401\)/],
  ])('whose credential %s is refused with a sentence at once', async (_what, status, sentence) => {
    agents.answerPollsWith = { status, body: '{}' }
    await add()
    await expect.poll(stateNow).toBe('refused')
    expect((await shown())?.note).toMatch(sentence)
    expect(agents.polls).toBe(1)
  })

  it('whose credential is revoked later is refused with a sentence, and asks no more', async () => {
    const { id } = await add()
    await agents.call(agents.begin(), write('x'))
    agents.answerPollsWith = { status: 401, body: '{}' }
    await expect.poll(stateNow).toBe('refused')
    expect((await shown())?.note).toMatch(/environment key was refused \(401\)/)
    const asked = agents.polls
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(agents.polls).toBe(asked)
    agents.answerPollsWith = null
    await ask('PATCH', `/v1/hosted-agents/${id}`, { environmentKey: agents.key })
    await expect.poll(stateNow).toBe('waiting')
  })

  it.each([
    ['500', { status: 500, body: '{"error":{"message":"down"}}' }],
    ['a page', { status: 200, body: '<html>proxy</html>' }],
  ])('whose vendor answers %s says so until it is over', async (_what, answer) => {
    agents.answerPollsWith = answer
    await add()
    await expect.poll(stateNow).toBe('failing')
    expect((await shown())?.note).toMatch(/could not be asked/)
    agents.answerPollsWith = null
    await expect.poll(shown).toMatchObject({ state: 'waiting', note: null })
  })

  it('that is switched off leaves its work to the queue, and goes on with it in the same unit', async () => {
    const { id } = await add()
    const session = agents.begin()
    await agents.call(session, write('kept'))
    await ask('PATCH', `/v1/hosted-agents/${id}`, { on: false })
    expect(await shown()).toMatchObject({ on: false, state: 'off' })
    const answered = agents.call(session, read)
    await expect.poll(() => session.followers.size).toBe(0)
    expect(agents.items[0]?.state).toBe('active')
    agents.lapse()
    await ask('PATCH', `/v1/hosted-agents/${id}`, { on: true })
    expect((await answered).text).toBe('kept')
    expect(await units()).toHaveLength(1)
    await expect.poll(async () => await sessionsOf(id)).toMatchObject([{ state: 'working', turns: 2 }])
  })

  it('that is changed makes new units by it, and what is under way goes on as it began', async () => {
    const { id } = await add()
    const session = agents.begin()
    await agents.call(session, write('kept'))
    await ask('PATCH', `/v1/hosted-agents/${id}`, { size: 'medium' })
    // By the controller that begins with this.
    await expect.poll(stateNow).toBe('waiting')
    expect(await sessionsOf(id)).toMatchObject([{ state: 'working', turns: 1 }])
    const other = agents.begin()
    await agents.call(other, write('other'))
    expect((await agents.call(session, read)).text).toBe('kept')
    // Each by one controller, to which a queue may give it again until its unit stands.
    expect(agents.items.map(({ state, givenTo }) => [state, new Set(givenTo).size])).toEqual([
      ['active', 1],
      ['active', 1],
    ])
    expect((await ask<{ units: Unit[] }>('GET', '/v1/units')).body.units.map(({ size }) => size)).toEqual([
      'medium',
      'small',
    ])
    // Its next turn is the new one's.
    agents.endTurn(session)
    await expect.poll(() => agents.items[0]?.state).toBe('stopped')
    agents.queue(session)
    expect((await agents.call(session, read)).text).toBe('kept')
    expect(new Set(agents.items.map(({ givenTo }) => givenTo[0])).size).toBe(2)
    expect(new Set(agents.items[2]?.givenTo)).toEqual(new Set(agents.items[1]?.givenTo))
  })

  it('keeps work queued while its key has no room, and says so', async () => {
    await add({ policy: { maxConcurrentUnits: 1 } })
    const first = agents.begin()
    await agents.call(first, write('1'))
    const answered = agents.call(agents.begin(), write('2'))
    await expect.poll(stateNow).toBe('full')
    expect((await shown())?.note).toMatch(/^No room for another unit: /)
    expect(agents.items[1]?.state).toBe('queued')
    agents.terminate(first)
    await answered
    await expect.poll(stateNow).toBe('waiting')
  })

  it('shows a session that asks for more than its key allows, with the reason', async () => {
    const { id } = await add({ policy: { allowedSizes: ['small'] } })
    const session = agents.begin({ metadata: { 'berth.size': 'medium' } })
    await expect
      .poll(async () => await sessionsOf(id))
      .toMatchObject([{ id: session.id, state: 'refused', unit: null, note: expect.stringMatching(/size/i) }])
    expect(agents.items[0]?.state).toBe('stopped')
  })

  it('shows a session that was deleted while its unit started as ended, and keeps nothing of it', async () => {
    const { id } = await add()
    service.engine.delay('start', 1000)
    const session = agents.begin()
    await expect.poll(async () => (await units()).length).toBe(1)
    agents.delete(session)
    await expect
      .poll(async () => await sessionsOf(id), { timeout: 10_000 })
      .toMatchObject([{ id: session.id, state: 'ended' }])
    await expect.poll(() => agents.items[0]?.state).toBe('stopped')
    await expect.poll(units).toEqual([])
  })

  it('begins sessions as copies of a unit that was prepared, and says it where that unit is gone', async () => {
    const { id } = await add()
    const spec = { name: 'prepared', image: 'node:22', egress: { mode: 'none', siblings: 'none' } }
    const created = await ask<{ units: Unit[] }>('POST', '/v1/units', { spec })
    const [prepared] = created.body.units
    if (!prepared) throw new Error('no unit was made')
    const { status } = await ask('PATCH', `/v1/hosted-agents/${id}`, { copyOf: prepared.id })
    expect(status).toBe(200)
    // By the controller that begins with this.
    await expect.poll(stateNow).toBe('waiting')
    const session = agents.begin()
    await agents.call(session, write('x'))
    const made = (await sessionsOf(id))[0]?.unit?.id
    expect((await ask<Unit>('GET', `/v1/units/${made}`)).body.forkedFrom).toBe(prepared.id)
    agents.terminate(session)
    await ask('DELETE', `/v1/units/${prepared.id}`)
    const later = agents.begin()
    await expect
      .poll(async () => (await sessionsOf(id)).find((each) => each.id === later.id))
      .toMatchObject({ state: 'refused', note: expect.stringMatching(/^There is no unit /) })
  })

  it('is not set to copies that its key does not allow, nor to those of a unit that is gone', async () => {
    const policy = { allowedSizes: ['nano'], egress: { mode: 'none', allow: [], siblings: 'none' } }
    const spec = { image: 'node:22', size: 'nano', egress: { mode: 'none', siblings: 'none' } }
    const made = async (name: string, more: object) => {
      const { body } = await ask<{ units: Unit[] }>('POST', '/v1/units', { spec: { ...spec, name, ...more } })
      return body.units[0]?.id ?? ''
    }
    const large = await made('large', { size: 'medium' })
    const wide = await made('wide', { egress: { mode: 'open', siblings: 'none' } })
    const gone = await made('gone', {})
    await ask('DELETE', `/v1/units/${gone}`)
    const refusals = [
      [large, 400, /^copyOf: must be a unit that the key may copy: .*size medium/],
      [wide, 400, /^copyOf: must be a unit that the key may copy: The unit would reach every public host/],
      [gone, 400, /^copyOf: must be a unit that the key may copy: it was destroyed/],
      [`unit_${'0'.repeat(32)}`, 404, /unit/],
    ] as const
    const refused = async (method: string, path: string, body: object) => {
      for (const [copyOf, status, sentence] of refusals) {
        const answer = await ask<{ error: { message: string } }>(method, path, { ...body, copyOf })
        expect([answer.status, answer.body.error.message]).toEqual([status, expect.stringMatching(sentence)])
      }
    }
    const body = { environment: agents.environment, environmentKey: agents.key, size: 'nano', policy }
    await refused('POST', '/v1/hosted-agents', body)
    expect(await shown()).toBeUndefined()
    const { id } = await add({ size: 'nano', policy })
    await refused('PATCH', `/v1/hosted-agents/${id}`, {})
    expect((await shown())?.copyOf).toBeNull()
    const copyOf = await made('right', {})
    expect((await ask('PATCH', `/v1/hosted-agents/${id}`, { copyOf })).status).toBe(200)
  })

  it('says which work it leaves for others', async () => {
    await add()
    agents.begin({}, { kind: 'riddle' })
    await expect.poll(async () => (await shown())?.note).toMatch(/unknown kind "riddle" is left for others/)
    expect(await stateNow()).toBe('waiting')
    await agents.call(agents.begin(), write('x'))
    await expect.poll(async () => (await shown())?.note).toBeNull()
  })

  it('shows what a session works without', async () => {
    const { id } = await add()
    const store = { type: 'memory_store', memory_store_id: 'memstore_1', mount_path: '/mnt/memory/notes' }
    await agents.call(agents.begin({ resources: [store] }), write('x'))
    await expect
      .poll(async () => await sessionsOf(id))
      .toMatchObject([{ state: 'working', note: expect.stringMatching(/works without its memory stores/) }])
  })

  it('of which a confirmation is held for an hour sleeps all the time, and costs nothing', async () => {
    const { id } = await add()
    const session = agents.begin()
    await agents.call(session, write('kept'))
    const held = agents.call(session, { ...read, ask: true })
    const unitNow = async () => (await ask<Unit>('GET', `/v1/units/${(await units())[0]?.id}`)).body
    const costNow = async () => [(await unitNow()).costCentsSoFar, (await sessionsOf(id))[0]?.costCents]
    // As above.
    service.clock.advance(MINUTE / 2)
    await expect.poll(async () => (await costNow())[1]).toBeGreaterThan(0)
    service.clock.advance(2 * MINUTE)
    await expect.poll(async () => (await unitNow()).state).toBe('sleeping')
    const [asked, before] = [(await audited()).length, await costNow()]
    expect(before[0]).toBeGreaterThan(0)
    for (let minute = 0; minute < 60; minute++) {
      service.clock.advance(MINUTE)
      // What is due runs.
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect([(await unitNow()).state, await costNow()]).toEqual(['sleeping', before])
    // Not a call of the controller about a unit.
    expect(await audited()).toHaveLength(asked)
    agents.confirm(session)
    expect((await held).text).toBe('kept')
  })

  it('that is deleted takes its units along, and its key', async () => {
    const { id, key } = await add()
    await agents.call(agents.begin(), write('x'))
    const [unit] = await units()
    const { body } = await ask<HostedDeleted>('DELETE', `/v1/hosted-agents/${id}`)
    expect(body).toEqual({ ok: true, destroyed: [unit?.id] })
    expect(await units()).toEqual([])
    expect(await shown()).toBeUndefined()
    const { agents: keys } = (
      await ask<{ agents: { id: string; revokedAt: string | null }[] }>('GET', '/v1/agents')
    ).body
    expect(keys.find((each) => each.id === key.id)?.revokedAt).not.toBeNull()
    expect((await ask('GET', `/v1/hosted-agents/${id}`)).status).toBe(404)
  })

  it('whose key a person revoked is refused with a sentence', async () => {
    const { key } = await add()
    await expect.poll(stateNow).toBe('waiting')
    await ask('DELETE', `/v1/keys/${key.id}`)
    const answered = agents.begin()
    await expect.poll(stateNow).toBe('refused')
    expect((await shown())?.note).toMatch(/key of Berth was refused/)
    expect(answered.status).toBe('running')
  })

  it('that a team has is not added again', async () => {
    await add()
    const body = { environment: agents.environment, environmentKey: 'x' }
    expect((await ask('POST', '/v1/hosted-agents', body)).status).toBe(409)
  })
})

describe('a server', () => {
  it('that is started again goes on with what was under way, in the same unit', async () => {
    const { id } = await add()
    const session = agents.begin()
    await agents.call(session, write('kept'))
    await controllers.stop()
    const answered = agents.call(session, read)
    agents.lapse()
    controllers = serveHere()
    expect((await answered).text).toBe('kept')
    expect(await units()).toHaveLength(1)
    await expect.poll(async () => await sessionsOf(id)).toMatchObject([{ id: session.id, turns: 2 }])
  })

  it('shares a queue with another one, and no call is run twice', { timeout: 120_000 }, async () => {
    await add({ policy: { maxConcurrentUnits: 10 } })
    const other = serveHere()
    try {
      const sessions = Array.from({ length: 6 }, () => agents.begin())
      await Promise.all(
        sessions.map(async (session, index) => {
          await agents.call(session, write(`${index}`))
          expect((await agents.call(session, read)).text).toBe(`${index}`)
        }),
      )
      expect(await units()).toHaveLength(6)
      for (const session of sessions) agents.terminate(session)
      await expect.poll(units).toEqual([])
    } finally {
      await other.stop()
    }
  })
})
