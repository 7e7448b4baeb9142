// Another vendor behind the controller's interface, in this one file: its queue is a list, without leases, a library, tokens or
// tools of the vendor's own. Everything else is the controller's, between it and the real service.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultPlan, serveEnvironment } from '../../packages/agents/src/environment.ts'
import {
  type LeasedQueue,
  type News,
  type OpenQueue,
  QueueRefused,
  type WorkItem,
} from '../../packages/agents/src/queue.ts'
import { Berth } from '../../packages/sdk/src/index.ts'
import type { AuditList } from '../../src/contract/audit.ts'
import type { UnitList } from '../../src/contract/unit.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const KEY = 'key-of-the-other-vendor'

let service: Service
let team: TestTeam
let waiting: WorkItem[]
let accepted: string[]
let answers: string[]
let ended: Set<string>
let told: News[]
let stop: () => Promise<void>

beforeEach(async () => {
  service = await startService()
  team = await makeTeam(service)
  ;[waiting, accepted, answers, ended, told] = [[], [], [], new Set(), []]
  stop = async () => {}
})
afterEach(async () => {
  await stop()
  await service.close()
})

/** Its agent writes what is in its item, and reads it. */
const open: OpenQueue = async ({ environmentKey }): Promise<LeasedQueue> => ({
  vendor: 'other',
  poll: async () => {
    if (environmentKey !== KEY) throw new QueueRefused('The other vendor refuses this key.')
    return waiting.find(({ id }) => !accepted.includes(id)) ?? null
  },
  stranded: async () => [],
  session: async (id) => ({ hasEnded: ended.has(id), metadata: {}, lacks: [], worker: null }),
  accept: async ({ id }) => void accepted.push(id),
  run: async ({ id }, tools, signal) => {
    for (const [name, input] of [
      ['write', { file_path: 'a.txt', content: `of ${id}` }],
      ['read', { file_path: 'a.txt' }],
    ] as const) {
      const tool = tools.find((each) => each.name === name)
      answers.push((await tool?.run({ id: `${id}-${name}`, input, signal })) ?? 'no such tool')
    }
  },
  end: async ({ id }) => void accepted.push(id),
})

function serve(environmentKey: string): Promise<void> {
  const gone = new AbortController()
  const done = serveEnvironment({
    open,
    environmentId: 'env_other',
    environmentKey,
    connect: (userAgent) => new Berth({ url: service.baseUrl, apiKey: team.key, userAgent }),
    version: 'test',
    plan: { ...defaultPlan, image: 'node:22' },
    atOnce: 2,
    tell: (news) => void told.push(news),
    signal: gone.signal,
    pauses: { empty: 20, failed: 20, mostFailed: 100, sweep: 50, full: 50 },
  })
  stop = async () => {
    gone.abort()
    await done.catch(() => {})
  }
  return done
}

const units = async () => (await service.call<UnitList>('GET', '/v1/units', { key: team.key })).body.units

describe('a vendor that one file knows', () => {
  it('has its sessions in units of its own name, which are in the audit log and go when they end', async () => {
    waiting.push({ id: 'work_1', sessionId: 'ses_1', kind: 'task', secret: null })
    void serve(KEY)
    await expect.poll(() => answers.at(-1)).toContain('of work_1')
    const [unit] = await units()
    expect(unit).toMatchObject({
      name: expect.stringMatching(/^other-/),
      metadata: { 'berth.agents': 'other', 'berth.environment': 'env_other', 'berth.session': 'ses_1' },
    })
    waiting.push({ id: 'work_2', sessionId: 'ses_1', kind: 'task', secret: null })
    await expect.poll(() => answers.at(-1)).toContain('of work_2')
    expect((await units()).map(({ id }) => id)).toEqual([unit?.id])
    const { events } = (await service.call<AuditList>('GET', '/v1/audit', { key: team.key })).body
    expect(events.some(({ userAgent }) => userAgent?.includes('other/ses_1'))).toBe(true)
    ended.add('ses_1')
    await expect.poll(units).toEqual([])
    expect(told.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['asked', 'begun', 'over', 'ended']))
  })

  it('and that refuses the credential ends the controller with its sentence', async () => {
    await expect(serve('another')).rejects.toThrow('The other vendor refuses this key.')
  })
})
