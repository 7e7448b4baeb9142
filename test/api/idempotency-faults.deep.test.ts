// `Idempotency-Key` under failures (reliability F20): the server dies at any point of a create, and calls come in any
// order and concurrently.

import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createServer } from '../../src/api/server.ts'
import type { App } from '../../src/app.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { ForkResult } from '../../src/contract/fork.ts'
import { resumeForks } from '../../src/domain/forks/run.ts'
import { destroyErroredUnits } from '../../src/domain/units/destroy.ts'
import { recover } from '../../src/domain/units/reconcile.ts'
import { DAY, HOUR, SECOND } from '../../src/lib/clock.ts'
import { createTestDomain, type TestDomain } from '../support/domain.ts'
import { makeKey, makeTeam } from '../support/make.ts'
import { isReplay, told } from '../support/replay.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

describe('after a crash of the server', () => {
  let domain: TestDomain
  beforeAll(async () => {
    domain = await createTestDomain()
  })
  afterAll(async () => await domain.close())

  type Owner = { key: string; teamId: string }

  async function makeOwner(): Promise<Owner> {
    const { teamId, userId } = await domain.makeCaller()
    const { secret } = await makeKey(domain, { teamId, userId: userId ?? '' })
    return { key: secret, teamId }
  }

  /** Starts a server process. It ends as by a kill, without an answer to calls in progress. */
  async function serve(app: App) {
    const server = createServer(app)
    await server.listen({ host: '127.0.0.1', port: 0 })
    const { port } = server.server.address() as AddressInfo
    const post = async <T>({ key }: Owner, path: string, body: object): Promise<Answer<T>> => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': 'once',
        },
        body: JSON.stringify(body),
      })
      return { status: response.status, headers: response.headers, body: (await response.json()) as T }
    }
    return {
      create: (owner: Owner, body: object = { spec }) => post<RunResult>(owner, '/v1/units', body),
      fork: (owner: Owner, path: string) => post<ForkResult>(owner, path, {}),
      printenv: async (owner: Owner, unitId: string, name: string) =>
        (await post<{ stdout: string }>(owner, `/v1/units/${unitId}/exec`, { cmd: ['printenv', name] })).body
          .stdout,
      die: async () => {
        const closed = server.close()
        server.server.closeAllConnections()
        // It waits a while for its calls, of which a crash holds one for ever.
        const passes = setInterval(() => domain.clock.advance(SECOND), 10)
        await closed.finally(() => clearInterval(passes))
      },
    }
  }

  async function lifeAfterCrash() {
    const app = domain.restarted()
    await recover(app)
    await resumeForks(app)
    return await serve(app)
  }

  const spec = {
    name: 'web',
    image: 'node:22',
    env: { PASSWORD: { secret: 'db-password' } },
    healthcheck: { cmd: ['true'] },
  }

  /** Sends a create that is never answered, because the server dies at this place. */
  async function createAndDie(owner: Owner, place: string, body: object = { spec }): Promise<void> {
    await askAndDie(place, (life) => life.create(owner, body))
  }

  async function askAndDie(
    place: string,
    ask: (life: Awaited<ReturnType<typeof serve>>) => Promise<unknown>,
  ): Promise<void> {
    domain.faults.set(place, 'crash')
    const life = await serve(domain.app)
    const ended = ask(life).then(
      () => 'answered',
      () => 'cut off',
    )
    await expect.poll(() => domain.faults.size).toBe(0)
    await life.die()
    expect(await ended).toBe('cut off')
  }

  const unitsOf = async ({ teamId }: Owner) =>
    await domain.app.db.selectFrom('units').select(['id', 'state']).where('team_id', '=', teamId).execute()

  const steps = ['image', 'machine', 'start', 'ready'].map((step) => `create.${step}`)
  const places = [...steps, 'idempotency.answer'].flatMap((place) => [`${place}.before`, `${place}.after`])

  test.each(places)('at %s, a retry returns the one unit that was made, with its secrets', async (place) => {
    const owner = await makeOwner()
    await createAndDie(owner, place)
    const [unit] = await unitsOf(owner)
    const unitId = unit?.id ?? ''

    const second = await lifeAfterCrash()
    const [answer, another] = await Promise.all([second.create(owner), second.create(owner)])
    expect(answer).toMatchObject({ status: 201, body: { units: [{ id: unitId, state: 'running' }] } })
    expect([answer, another].map(isReplay)).toEqual([true, true])
    expect(told(another)).toEqual(told(answer))
    const password = await second.printenv(owner, unitId, 'PASSWORD')
    expect(answer.body.outputs).toEqual({ 'db-password': password.trim() })
    expect(await unitsOf(owner)).toEqual([{ id: unitId, state: 'running' }])
    expect(domain.engine.machines().filter(({ id }) => id === unitId)).toHaveLength(1)
    await second.die()

    const third = await lifeAfterCrash()
    expect(told(await third.create(owner))).toEqual(told(answer))
    await third.die()
  })

  const forkPlaces = [...['copy', 'start', 'ready'].map((step) => `fork.${step}`), 'idempotency.answer']
  const forked = forkPlaces.flatMap((place) => [`${place}.before`, `${place}.after`])

  test.each(forked)('at %s of a fork, a retry returns the copies, which are made once', async (place) => {
    const owner = await makeOwner()
    const first = await serve(domain.app)
    await first.create(owner, { spec, stack: 'shop' })
    await first.die()
    await askAndDie(place, (life) => life.fork(owner, '/v1/stacks/shop/fork'))
    const units = await unitsOf(owner)
    expect(units).toHaveLength(2)

    const second = await lifeAfterCrash()
    const [answer, another] = await Promise.all([1, 2].map(() => second.fork(owner, '/v1/stacks/shop/fork')))
    if (!answer || !another) throw new Error('nothing was answered')
    expect(answer).toMatchObject({
      status: 201,
      body: { units: [{ state: 'running' }], copied: { web: 'memory' }, skipped: [] },
    })
    expect([answer, another].map(isReplay)).toEqual([true, true])
    expect(told(another)).toEqual(told(answer))
    expect((await unitsOf(owner)).map(({ id }) => id)).toEqual(units.map(({ id }) => id))
    await second.die()
  })

  test.each([0, 2 * HOUR])(
    'during a create that failed, a retry %i ms later returns the failure',
    async (laterMs) => {
      const owner = await makeOwner()
      domain.engine.fail('start', 'start_failed')
      await createAndDie(owner, 'idempotency.answer.before')
      domain.clock.advance(laterMs)
      const life = await lifeAfterCrash()
      await destroyErroredUnits(domain.app)
      const [unit] = await unitsOf(owner)
      expect(unit?.state).toBe(laterMs === 0 ? 'error' : 'destroyed')
      const answer = await life.create(owner)
      expect(answer).toMatchObject({
        status: 502,
        body: {
          error: {
            code: 'provider_error',
            message: expect.stringMatching(/^The unit could not be started\./),
            details: { unitId: unit?.id },
          },
        },
      })
      expect(told(await life.create(owner))).toEqual(told(answer))
      expect(await unitsOf(owner)).toHaveLength(1)
      await life.die()
    },
  )

  test('during a create without waiting, a retry returns the unit in its present state', async () => {
    const owner = await makeOwner()
    const body = { spec, wait: false }
    await createAndDie(owner, 'idempotency.answer.before', body)
    const life = await lifeAfterCrash()
    await expect.poll(async () => await unitsOf(owner)).toMatchObject([{ state: 'running' }])
    const answer = await life.create(owner, body)
    expect(answer).toMatchObject({ status: 201, body: { units: [{ state: 'running' }] } })
    expect(Object.keys(answer.body.outputs)).toEqual(['db-password'])
    await life.die()
  })

  test('an answer that cannot be stored makes the call fail, and a retry returns it', async () => {
    const owner = await makeOwner()
    domain.faults.set('idempotency.answer.before', 'error')
    const life = await serve(domain.app)
    expect((await life.create(owner)).status).toBe(500)
    const answer = await life.create(owner)
    expect(answer).toMatchObject({ status: 201, body: { units: [{ state: 'running' }] } })
    expect(await unitsOf(owner)).toHaveLength(1)
    await life.die()
  })
})

describe('calls with an Idempotency-Key', () => {
  let service: Service
  beforeAll(async () => {
    service = await startService({ loops: false })
  })
  afterAll(async () => await service.close())

  type Call = { kind: 'call'; team: number; key: string; name: string }
  type Step = Call | { kind: 'settle' } | { kind: 'a day passes' } | { kind: 'the next image is not found' }

  const call: fc.Arbitrary<Step> = fc.record({
    kind: fc.constant('call' as const),
    team: fc.nat({ max: 1 }),
    key: fc.constantFrom('k1', 'k2'),
    name: fc.constantFrom('a', 'b'),
  })
  const rest = fc.constantFrom<Step>(
    { kind: 'settle' },
    { kind: 'a day passes' },
    { kind: 'the next image is not found' },
  )
  const schedule = fc.array(fc.oneof({ weight: 6, arbitrary: call }, { weight: 2, arbitrary: rest }), {
    minLength: 2,
    maxLength: 24,
  })

  test('in any order make one unit a day for each key, with one answer, and refuse other bodies', async () => {
    const statuses = new Set<number>()
    await fc.assert(
      fc.asyncProperty(schedule, async (steps) => {
        const owners = [await makeTeam(service), await makeTeam(service)]
        const calls = await play(steps, owners)
        for (const { answer } of calls) statuses.add(answer.status)
        const used = Map.groupBy(calls, ({ day, team, key }) => `${day} ${team} ${key}`)
        for (const sent of used.values()) expectOneAnswer(sent)
        const made = await service.app.db
          .selectFrom('units')
          .select('name')
          .where(
            'team_id',
            'in',
            owners.map(({ teamId }) => teamId),
          )
          .execute()
        expect(made).toHaveLength(used.size)
      }),
      { numRuns: 40 },
    )
    expect([...statuses].toSorted((a, b) => a - b)).toEqual([201, 409, 502])
  }, 60_000)

  type Sent = Call & { day: number; answer: Answer }

  /** Calls are sent without waiting for one another, until a step waits for all of them. */
  async function play(steps: Step[], owners: { key: string }[]): Promise<Sent[]> {
    const sent: Promise<Sent>[] = []
    let day = 1
    for (const step of steps) {
      switch (step.kind) {
        case 'call':
          sent.push(send(step, owners[step.team]?.key ?? '', day))
          break
        case 'settle':
          await Promise.all(sent)
          break
        case 'a day passes':
          await Promise.all(sent)
          service.clock.advance(DAY)
          day += 1
          break
        case 'the next image is not found':
          service.engine.fail('pull', 'image_not_found')
      }
    }
    const calls = await Promise.all(sent)
    service.engine.heal('pull')
    return calls
  }

  async function send(step: Call, key: string, day: number): Promise<Sent> {
    const answer = await service.call('POST', '/v1/units', {
      key,
      body: { spec: { name: step.name, image: 'node:22', env: { TOKEN: { secret: 'TOKEN' } } } },
      headers: { 'idempotency-key': step.key },
    })
    return { ...step, day, answer }
  }

  /** For the body that came first: all its calls get the same answer, and one of them is not a replay. */
  function expectOneAnswer(sent: Sent[]): void {
    const accepted = sent.filter(({ answer }) => answer.status !== 409)
    expect(new Set(accepted.map(({ name }) => name)).size).toBe(1)
    expect(new Set(accepted.map(({ answer }) => told(answer))).size).toBe(1)
    expect(accepted.filter(({ answer }) => !isReplay(answer))).toHaveLength(1)
    const [{ name } = { name: '' }] = accepted
    expect(sent.filter((each) => each.name === name)).toHaveLength(accepted.length)
  }
})
