// A prepared unit of which a key may make no copies: the controller says so before it asks for any work.

import { afterEach, beforeEach, expect, it } from 'vitest'
import { defaultPlan, serveEnvironment } from '../../packages/agents/src/environment.ts'
import type { LeasedQueue } from '../../packages/agents/src/queue.ts'
import { Berth } from '../../packages/sdk/src/index.ts'
import type { Policy } from '../../src/contract/policy.ts'
import { makeKey, makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let polls: number

beforeEach(async () => {
  service = await startService()
  team = await makeTeam(service)
  polls = 0
})
afterEach(async () => await service.close())

const connect = (apiKey: string) => new Berth({ url: service.baseUrl, apiKey })

/** Serves until the queue was asked three times. Rejects with why it was not. */
async function serve(policy: Partial<Policy>, { copyOf = 'prepared', sleep = '1m' } = {}): Promise<void> {
  const { secret: key } = await makeKey(service, { ...team, policy })
  const gone = new AbortController()
  const queue: LeasedQueue = {
    vendor: 'other',
    poll: async () => {
      if (++polls === 3) gone.abort()
      return null
    },
    stranded: async () => [],
    session: async () => ({ hasEnded: false, metadata: {}, lacks: [], worker: null }),
    accept: async () => {},
    run: async () => {},
    end: async () => {},
  }
  await serveEnvironment({
    open: async () => queue,
    environmentId: 'env_other',
    environmentKey: 'its key',
    connect: () => connect(key),
    version: 'test',
    plan: { ...defaultPlan, copyOf, sleep },
    atOnce: 2,
    tell: () => {},
    signal: gone.signal,
    pauses: { empty: 1 },
  })
}

const inside = { name: 'prepared', image: 'node:22', size: 'small', egress: { mode: 'none' } } as const

/** With the secret's own host, without which it may not be bound. */
const bound = {
  env: { TOKEN: { teamSecret: 'TOKEN' } },
  egress: { mode: 'listed', allow: ['a.example.com'], siblings: 'team' },
}

it.each([
  ['its size, small', { allowedSizes: ['nano' as const] }, {}],
  ['images of docker.io', { allowedRegistries: ['ghcr.io'] }, {}],
  ['what it may reach', { egress: { mode: 'none' as const, allow: [], siblings: 'none' as const } }, {}],
  ["the team's secret TOKEN", { allowedSecrets: ['OTHER'] }, bound],
  ['them to sleep only after 2h', { maxSleep: '1h' }, { sleep: '2h' }],
])('a key that does not allow %s asks for no work', async (what, policy, given) => {
  const { sleep = '1m', ...more } = given as { sleep?: string }
  const berth = connect(team.key)
  await service.call('PUT', '/v1/secrets/TOKEN', {
    key: team.key,
    body: { value: 'x', hosts: ['a.example.com'] },
  })
  await berth.units.create({ ...inside, egress: { mode: 'none', siblings: 'team' }, ...more })
  await expect(serve(policy, { sleep })).rejects.toThrow(
    `Sessions cannot be copies of the unit "prepared": the key does not allow ${what}.`,
  )
  expect(polls).toBe(0)
})

it('a unit that is gone, or was never there, is told as such', async () => {
  const unit = await connect(team.key).units.create(inside)
  await unit.destroy()
  for (const copyOf of ['prepared', unit.id])
    await expect(serve({}, { copyOf })).rejects.toThrow(
      `There is no unit "${copyOf}", of which those of sessions are copies.`,
    )
  expect(polls).toBe(0)
})

it('one that the key allows is no hindrance', async () => {
  await connect(team.key).units.create(inside)
  await serve({})
  expect(polls).toBe(3)
})
