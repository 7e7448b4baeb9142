// The controller of hosted agents between a control plane in memory, asked by the vendor's own library, and the real service.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Berth } from '../../packages/sdk/src/index.ts'
import { defaultPlan, serveEnvironment } from '../../packages/agents/src/environment.ts'
import { QueueRefused } from '../../packages/agents/src/queue.ts'
import { vendors } from '../../packages/agents/src/vendors.ts'
import { makeKey, makeTeam, type TestTeam } from '../support/make.ts'
import { type ManagedAgents, startManagedAgents } from '../support/managed-agents.ts'
import { type Service, startService } from '../support/service.ts'

/** Of one queue at once. */
const SESSIONS = 50

let service: Service
let team: TestTeam
let agents: ManagedAgents
let controllers: { stop: () => Promise<void> }[]
let said: string[]

beforeEach(async () => {
  ;[service, agents] = await Promise.all([startService(), startManagedAgents()])
  team = await makeTeam(service)
  controllers = []
  said = []
})
afterEach(async () => {
  await Promise.all(controllers.map(async ({ stop }) => await stop()))
  expect(agents.faults).toEqual([])
  await Promise.all([agents.close(), service.close()])
})

type Given = {
  key?: string
  environmentKey?: string
  atOnce?: number
  name?: string
  through?: typeof fetch
  url?: string | undefined
  copyOf?: string | null
}

/** The vendor by its own name. */
const byName: typeof fetch = async (input, init) => {
  const url = new URL(input instanceof Request ? input.url : input)
  const isVendor = url.host === 'api.anthropic.com'
  return await fetch(isVendor ? `${agents.url}${url.pathname}${url.search}` : input, init)
}
const memory = { type: 'memory_store', memory_store_id: 'memstore_1', mount_path: '/mnt/memory/notes' }

function startController({
  key = team.key,
  environmentKey = agents.key,
  atOnce = 8,
  name = 'one',
  through = fetch,
  url = agents.url,
  copyOf = null,
}: Given = {}) {
  const gone = new AbortController()
  const done = serveEnvironment({
    open: vendors.claude.open,
    environmentId: agents.environment,
    environmentKey,
    ...(url !== '' && { url }),
    workerId: name,
    idleMs: 100,
    reclaimMs: 300,
    strandedMs: 50,
    connect: (userAgent) => new Berth({ url: service.baseUrl, apiKey: key, userAgent, fetch: through }),
    fetch: through,
    version: 'test',
    plan: { ...defaultPlan, image: 'node:22', sleep: '10m', copyOf },
    atOnce,
    tell: ({ session, sentence }) => void said.push(`${session ?? 'queue'}: ${sentence}`),
    signal: gone.signal,
    pauses: { empty: 20, failed: 20, mostFailed: 100, sweep: 100, full: 50 },
  })
  done.catch(() => {})
  const stop = async () => {
    gone.abort()
    await done.catch(() => {})
  }
  controllers.push({ stop })
  return { done, stop }
}

type Shown = { id: string; name: string; egress: object; env: object }
const unitsNow = async () =>
  (await service.call<{ units: Shown[] }>('GET', '/v1/units', { key: team.key })).body.units
const write = (content: string) => ({ name: 'write', input: { file_path: 'a.txt', content } })
const read = { name: 'read', input: { file_path: 'a.txt' } }

describe('a session', () => {
  it('works in one unit over several turns, which is destroyed when it ends', async () => {
    startController()
    const session = agents.begin()
    expect(await agents.call(session, write('first'))).toEqual({
      text: 'wrote /workspace/a.txt',
      isError: false,
    })
    agents.endTurn(session)
    await expect.poll(() => agents.items[0]?.state).toBe('stopped')
    agents.queue(session)
    expect(await agents.call(session, read)).toEqual({ text: 'first', isError: false })
    const units = await unitsNow()
    expect(units).toMatchObject([{ egress: { mode: 'none', siblings: 'none' } }])
    agents.terminate(session)
    await expect.poll(unitsNow).toEqual([])
    const { body } = await service.call<{ events: { userAgent: string; action: string }[] }>(
      'GET',
      '/v1/audit',
      {
        key: team.key,
      },
    )
    const made = body.events.find(({ action }) => action === 'unit.create')
    expect(made?.userAgent).toContain(`claude/${session.id}`)
  })

  it('is told what it did wrong by a call that fails', async () => {
    startController()
    const session = agents.begin()
    expect(await agents.call(session, read)).toMatchObject({
      isError: true,
      text: expect.stringContaining('a.txt'),
    })
    const edit = { name: 'edit', input: { file_path: 'a.txt', old_string: 'x', new_string: 'y' } }
    await agents.call(session, write('xx'))
    expect(await agents.call(session, edit)).toMatchObject({
      isError: true,
      text: expect.stringContaining('2 times'),
    })
    const all = { ...edit, input: { ...edit.input, replace_all: true } }
    expect(await agents.call(session, all)).toMatchObject({ isError: false })
    expect((await agents.call(session, read)).text).toBe('yy')
    expect(await agents.call(session, { name: 'write', input: { file_path: 7 } })).toMatchObject({
      isError: true,
    })
  })

  it('runs no call before its confirmation', async () => {
    startController()
    const session = agents.begin()
    const held = agents.call(session, { ...write('held'), ask: true })
    await agents.call(session, write('free'))
    expect((await agents.call(session, read)).text).toBe('free')
    agents.confirm(session)
    await held
    expect((await agents.call(session, read)).text).toBe('held')
  })

  it('without a token of its own is served with the key of the environment', async () => {
    startController()
    const session = agents.begin({}, { token: null })
    expect(await agents.call(session, write('x'))).toMatchObject({ isError: false })
  })

  it('with memory stores has a worker of the vendor in its unit, with a placeholder for its own calls alone', async () => {
    startController({ url: '', through: byName })
    const { id } = agents.begin({ resources: [memory] })
    // The engine in memory does not run it: it is begun three times, and then its work is ended.
    await expect.poll(() => agents.items[0]?.state, { timeout: 25_000 }).toBe('stopped')
    expect(said.join('\n')).toMatch(/is ended: the worker/)
    const [unit] = await unitsNow()
    const [item] = agents.items
    expect(unit).toMatchObject({
      egress: { mode: 'listed', allow: ['api.anthropic.com'], siblings: 'none' },
      env: {
        ANTHROPIC_SESSION_TOKEN: {
          hosts: ['api.anthropic.com'],
          methods: ['GET', 'POST', 'DELETE'],
          paths: [
            `/v1/sessions/${id}`,
            `/v1/sessions/${id}/events`,
            `/v1/sessions/${id}/events/stream`,
            `/v1/environments/${agents.environment}/work/${item?.id}/heartbeat`,
            `/v1/environments/${agents.environment}/work/${item?.id}/stop`,
            '/v1/memory_stores/memstore_1/memories',
            '/v1/memory_stores/memstore_1/memories/*',
          ],
        },
      },
    })
    const env = service.engine.envOf(unit?.id ?? '')
    expect(env['ANTHROPIC_SESSION_TOKEN']).toMatch(/^berth_session_/)
    expect(JSON.stringify([unit, env])).not.toContain(item?.token)
  })

  it.each([
    ['an address that brokers do not serve', {}, { url: undefined }, 'not at an https address'],
    ['work without a token', { token: null }, { url: '' }, 'its work has no token'],
  ])('with memory stores and %s works without them, and that is said', async (_what, item, given, why) => {
    startController({ ...given, through: byName })
    const session = agents.begin({ resources: [memory] }, item)
    expect(await agents.call(session, write('x'))).toMatchObject({ isError: false })
    expect(said.join('\n')).toMatch(new RegExp(`it works without .*${why}`))
  })

  it('with more memory stores than a token may serve works without them, and that is said', async () => {
    startController({ url: '', through: byName })
    const resources = Array.from({ length: 14 }, (_, n) => ({
      ...memory,
      memory_store_id: `memstore_${n}`,
      mount_path: `/mnt/memory/notes-${n}`,
    }))
    expect(await agents.call(agents.begin({ resources }), write('x'))).toMatchObject({ isError: false })
    expect(said.join('\n')).toMatch(
      /it works without its memory stores: together they need more than 32 paths/,
    )
  })

  it.each(['terminate', 'archive', 'delete'] as const)(
    'between two turns has its unit destroyed when people %s it',
    async (end) => {
      startController()
      const session = agents.begin()
      await agents.call(session, write('x'))
      agents.endTurn(session)
      await expect.poll(() => agents.items[0]?.state, { timeout: 15_000 }).toBe('stopped')
      expect(await unitsNow()).toHaveLength(1)
      agents[end](session)
      await expect.poll(unitsNow, { timeout: 15_000 }).toEqual([])
      await expect.poll(() => said.join('\n')).toMatch(/the session has ended, and unit \S+ was destroyed/)
    },
    40_000,
  )

  it('that is deleted while its unit starts has its work ended and its unit destroyed', async () => {
    service.engine.delay('start', 1000)
    startController()
    const session = agents.begin()
    await expect.poll(async () => (await unitsNow()).length).toBe(1)
    agents.delete(session)
    await expect.poll(() => agents.items[0]?.state, { timeout: 10_000 }).toBe('stopped')
    await expect.poll(unitsNow, { timeout: 10_000 }).toEqual([])
    const later = agents.begin()
    agents.delete(later)
    await expect.poll(() => agents.items[1]?.state).toBe('stopped')
  })

  it('has a copy of the unit that was prepared, unless it asks for another image, size or rules', async () => {
    const berth = new Berth({ url: service.baseUrl, apiKey: team.key })
    const source = await berth.units.create({
      name: 'prepared',
      image: 'node:22',
      size: 'nano',
      egress: { mode: 'none' },
    })
    await source.files.write('/workspace/a.txt', 'prepared')
    for (const copyOf of ['prepared', source.id]) {
      const { stop } = startController({ copyOf })
      const session = agents.begin()
      expect(await agents.call(session, read)).toEqual({ text: 'prepared', isError: false })
      const made = (await unitsNow()).find(({ name }) => name.startsWith('claude-'))
      expect(made).toMatchObject({
        size: 'nano',
        egress: { mode: 'none' },
        metadata: { 'berth.session': session.id },
        atEnd: 'destroy',
      })
      const other = agents.begin({ metadata: { 'berth.size': 'small' } })
      expect(await agents.call(other, read)).toMatchObject({ isError: true })
      for (const each of [session, other]) agents.terminate(each)
      await expect.poll(async () => (await unitsNow()).map(({ name }) => name)).toEqual(['prepared'])
      await stop()
    }
  })

  it('of which the prepared unit is gone is ended with a sentence', async () => {
    const berth = new Berth({ url: service.baseUrl, apiKey: team.key })
    const source = await berth.units.create({ name: 'gone', image: 'node:22' })
    startController({ copyOf: 'gone' })
    await expect.poll(() => agents.polls).toBeGreaterThan(0)
    await source.destroy()
    agents.begin()
    await expect.poll(() => agents.items[0]?.state).toBe('stopped')
    expect(said.join('\n')).toContain('There is no unit "gone", of which those of sessions are copies.')
  })

  it('that names a repository has it cloned before its first call, and is told in the log where it is not', async () => {
    const ran: string[][] = []
    service.engine.onExec(({ argv }) => {
      ran.push([...argv])
      return { exitCode: argv.some((each) => each.includes('private')) ? 128 : 0, stderr: 'no access' }
    })
    startController()
    const named = async (repo: string) =>
      await agents.call(agents.begin({ metadata: { 'berth.repo': repo } }), write('x'))
    await named('https://github.com/owner/name.git')
    expect(ran).toEqual([
      ['git', 'clone', '--quiet', '--', 'https://github.com/owner/name.git', '/workspace/name'],
    ])
    expect(said.join('\n')).toContain('the repository was cloned to /workspace/name')
    await named('https://github.com/owner/private.git')
    expect(said.join('\n')).toContain('the repository was not cloned: no access')
    for (const repo of ['https://user:hidden@github.com/a/b', 'file:///etc', '--upload-pack=x'])
      await named(repo)
    expect(ran).toHaveLength(2)
    expect(said.filter((line) => line.includes('berth.repo was left out'))).toHaveLength(3)
    expect(said.join('\n')).not.toContain('hidden')
  })

  it.each([
    ['a size', { 'berth.size': 'medium' }, /size/i],
    ['an image', { 'berth.image': 'ghcr.io/some/image:1' }, /may not use images of ghcr\.io/],
    ['hosts', { 'berth.egress': 'open' }, /egress|reach/i],
    ['what nobody knows', { 'berth.size': 'enormous' }, /size/i],
  ])(
    'that asks for %s beyond what the key may give is ended with a sentence',
    async (_what, metadata, why) => {
      const egress = { mode: 'none' as const, allow: [], siblings: 'none' as const }
      const policy = { allowedSizes: ['small' as const], allowedRegistries: ['docker.io'], egress }
      const { secret } = await makeKey(service, { ...team, policy })
      startController({ key: secret })
      agents.begin({ metadata })
      await expect.poll(() => agents.items[0]?.state).toBe('stopped')
      const ended = said.filter((line) => line.includes('cannot begin, and is ended: '))
      expect(ended).toEqual([expect.stringMatching(why)])
      expect(await unitsNow()).toEqual([])
    },
  )
})

describe('the queue', () => {
  it('keeps the work for which the key has no room, and gives it again when there is', async () => {
    const { secret } = await makeKey(service, { ...team, policy: { maxConcurrentUnits: 1 } })
    startController({ key: secret })
    const first = agents.begin()
    await agents.call(first, write('1'))
    const second = agents.begin()
    const answered = agents.call(second, write('2'))
    await expect.poll(() => said.join('\n')).toContain('stays queued')
    expect(agents.items[1]?.state).toBe('queued')
    agents.terminate(first)
    await answered
  })

  it.each([
    ['500', { status: 500, body: '{"error":{"message":"down"}}' }],
    ['a page', { status: 200, body: '<html>proxy</html>' }],
    ['no work item', { status: 200, body: '{"id":7}' }],
  ])('that answers %s is asked again later, and said to be so', async (_what, answer) => {
    agents.answerPollsWith = answer
    startController()
    await expect
      .poll(() => said.filter((line) => line.includes('could not be asked')).length)
      .toBeGreaterThan(1)
    agents.answerPollsWith = null
    await agents.call(agents.begin(), write('x'))
  })

  it.each([401, 403, 404])(
    'that refuses the credential with %i ends the controller with a sentence',
    async (status) => {
      agents.answerPollsWith = { status, body: '{}' }
      const { done } = startController()
      await expect(done).rejects.toBeInstanceOf(QueueRefused)
    },
  )

  it.each([3_600_000, -3_600_000])(
    'whose clock is %i ms ahead gives its work once, and again when it is due',
    async (ms) => {
      agents.aheadMs = ms
      const first = startController({ name: 'one' })
      const session = agents.begin()
      await agents.call(session, write('kept'))
      const given = agents.items[0]?.givenTo.length
      const polled = agents.polls
      await expect.poll(() => agents.polls).toBeGreaterThan(polled + 10)
      expect(agents.items[0]?.givenTo).toHaveLength(given ?? 0)
      await first.stop()
      agents.lapse()
      startController({ name: 'two' })
      expect((await agents.call(session, read)).text).toBe('kept')
      expect(await unitsNow()).toHaveLength(1)
    },
  )

  it.each([
    ['unknown work', 'riddle'],
    ['work of a session that is under way', 'session'],
    ['work that cannot begin', 'unbegun'],
  ])('that gives %s again at once is asked no faster than an empty one', async (_what, kind) => {
    const metadata: Record<string, string> = kind === 'unbegun' ? { 'berth.image': 'not an image' } : {}
    const session = agents.begin({ metadata })
    const [item] = agents.items
    const data = { type: kind === 'riddle' ? 'riddle' : 'session', id: session.id }
    const secret = Buffer.from(JSON.stringify({ sessions_token: item?.token })).toString('base64url')
    const given = { id: item?.id, type: 'work', state: 'queued', data, secret }
    agents.answerPollsWith = { status: 200, body: JSON.stringify(given) }
    startController()
    if (kind === 'session') await agents.call(session, write('x'))
    else await expect.poll(() => said.some((line) => /left for others|is ended/.test(line))).toBe(true)
    const asked = agents.polls
    await new Promise((resolve) => setTimeout(resolve, 1000))
    // Of 20 ms at least each.
    expect(agents.polls - asked).toBeLessThanOrEqual(51)
    agents.answerPollsWith = null
  })

  it('leaves work of an unknown kind to others, and says so once', async () => {
    startController()
    agents.begin({}, { kind: 'riddle' })
    await expect.poll(() => agents.items[0]?.givenTo.length).toBeGreaterThan(1)
    expect(agents.items[0]?.state).toBe('queued')
    expect(said.filter((line) => line.includes('riddle'))).toHaveLength(1)
    await agents.call(agents.begin(), write('x'))
  })
})

describe('controllers', () => {
  it('of one queue share its sessions, each in one unit, and no call is run twice', {
    timeout: 120_000,
  }, async () => {
    for (const name of ['one', 'two']) startController({ name, atOnce: 30 })
    const sessions = Array.from({ length: SESSIONS }, () => agents.begin())
    await Promise.all(
      sessions.map(async (session, index) => {
        await agents.call(session, write(`${index}`))
        expect((await agents.call(session, read)).text).toBe(`${index}`)
      }),
    )
    expect(await unitsNow()).toHaveLength(SESSIONS)
    for (const session of sessions) agents.terminate(session)
    await expect.poll(unitsNow).toEqual([])
  })

  it('begin what another one accepted and never began', async () => {
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const session = agents.begin({}, { state: 'starting', ackedAt: at, leasedAt: Date.now() })
    startController()
    expect(await agents.call(session, write('x'))).toMatchObject({ isError: false })
  })

  it('that end leave the session to the next one, which goes on in its unit', async () => {
    const first = startController({ name: 'one' })
    const session = agents.begin()
    await agents.call(session, write('kept'))
    await first.stop()
    expect(agents.items[0]?.state).toBe('active')
    agents.lapse()
    startController({ name: 'two' })
    expect((await agents.call(session, read)).text).toBe('kept')
    expect(await unitsNow()).toHaveLength(1)
  })
})

/** What a process does whose next call is its last: it is not sent, or its answer comes to nobody. */
function dyingAt(last: number, when: 'before' | 'after') {
  const buried = Promise.withResolvers<never>()
  buried.promise.catch(() => {})
  let calls = 0
  const died = Promise.withResolvers<void>()
  const through: typeof fetch = async (input, init) => {
    calls++
    if (calls === last && when === 'after') await fetch(input, init)
    if (calls >= last) {
      died.resolve()
      return await buried.promise
    }
    return await fetch(input, init)
  }
  return { through, died: died.promise, bury: () => buried.reject(new Error('buried')) }
}

const deaths = Array.from({ length: 24 }, (_, index) => index + 1).flatMap((last) =>
  (['before', 'after'] as const).map((when) => [last, when] as const),
)

describe('a controller that is killed', () => {
  it.each(deaths)(
    'at its call %i, %s it is sent, leaves the session to the next one, and the command runs once',
    { timeout: 60_000 },
    async (last, when) => {
      const { through, died, bury } = dyingAt(last, when)
      const session = agents.begin()
      const answered = agents.call(session, { name: 'bash', input: { command: 'echo once' } })
      const first = startController({ name: 'killed', through })
      await Promise.race([died, answered])
      agents.lapse()
      startController({ name: 'next' })
      await answered
      const units = await unitsNow()
      expect(units).toHaveLength(1)
      const path = `/v1/units/${units[0]?.id}/processes`
      const { body } = await service.call<{ processes: object[] }>('GET', path, { key: team.key })
      expect(body.processes).toHaveLength(1)
      agents.terminate(session)
      await expect.poll(unitsNow).toEqual([])
      bury()
      await first.stop()
    },
  )
})
