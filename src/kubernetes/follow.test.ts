// Objects of Kubernetes are followed over everything that becomes of an API server.

import { afterEach, beforeEach, expect, it } from 'vitest'
import { createTestClock, type TestClock } from '../../test/support/clock.ts'
import { type FakeApiServer, startFakeApiServer } from '../../test/support/kubernetes/fake-api-server.ts'
import { SECOND } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { type Api, createObject, deleteObject, openApi } from './api.ts'
import { type Followed, followObjects } from './follow.ts'
import type { KubeObject } from './api.ts'

let fake: FakeApiServer
let api: Api
let clock: TestClock
let stop: AbortController
let followed: Followed<KubeObject>

beforeEach(async () => {
  fake = await startFakeApiServer()
  api = openApi(fake.access)
  clock = createTestClock()
  stop = new AbortController()
  await makeNode('one')
  followed = followObjects(api, { path: NODES }, { clock, log: silentLog, signal: stop.signal })
  await expect.poll(names).toEqual(['one'])
  await expect.poll(watches).toBe(1)
})
afterEach(async () => {
  stop.abort()
  await followed.stopped
  api.close()
  await fake.close()
})

const NODES = '/api/v1/nodes'
const makeNode = async (name: string) => await createObject(api, NODES, { metadata: { name } })
const names = () => [...(followed.objects()?.keys() ?? [])].toSorted((one, other) => (one < other ? -1 : 1))
const watches = () => fake.requests.filter((each) => each.includes('watch=true')).length

/** Lets every pause end. */
async function seen(wanted: string[]): Promise<void> {
  const look = () => {
    clock.advance(30 * SECOND)
    return names()
  }
  await expect.poll(look).toEqual(wanted)
}

it('a watch that is cut is followed by a list, which has what happened meanwhile', async () => {
  fake.cutWatches()
  await makeNode('two')
  await deleteObject(api, `${NODES}/one`, {})
  await seen(['two'])
})

it('a watch from a version that is too old is followed by a list', async () => {
  fake.cutWatches()
  fake.compact()
  await makeNode('two')
  await seen(['one', 'two'])
  await expect.poll(watches).toBeGreaterThan(1)
})

it('a watch that has said nothing for 90 seconds is taken for dead, and one that speaks is not', async () => {
  clock.advance(80 * SECOND)
  await makeNode('two')
  await expect.poll(names).toEqual(['one', 'two'])
  clock.advance(80 * SECOND)
  await makeNode('three')
  await expect.poll(names).toEqual(['one', 'three', 'two'])
  expect(watches()).toBe(1)
  fake.silenceWatches()
  await makeNode('four')
  clock.advance(80 * SECOND)
  expect(watches()).toBe(1)
  clock.advance(10 * SECOND)
  await seen(['four', 'one', 'three', 'two'])
})

it('what was known stands while the API server is away, and is brought up to date when it is back', async () => {
  fake.stop()
  for (let round = 0; round < 20; round += 1) clock.advance(30 * SECOND)
  expect(names()).toEqual(['one'])
  fake.start()
  await makeNode('two')
  await seen(['one', 'two'])
})

it('a server that asks for patience gets it, and others longer pauses from one failure to the next', async () => {
  fake.refuseNext(1, 429, { 'retry-after': '600' })
  fake.cutWatches()
  const lists = () =>
    fake.requests.filter((each) => each.startsWith('GET') && !each.includes('watch=true')).length
  const advanced = () => {
    clock.advance(SECOND)
    return lists()
  }
  await expect.poll(advanced).toBe(2)
  for (let second = 0; second < 300; second += 1) clock.advance(SECOND)
  await makeNode('two')
  expect(names()).toEqual(['one'])
  fake.refuseNext(4, 500)
  clock.advance(600 * SECOND)
  await seen(['one', 'two'])
  expect(lists()).toBe(7)
})

it('each watch says how long it is to last, and asks for bookmarks', () => {
  const [, query] = fake.requests.find((each) => each.includes('watch=true'))?.split('?') ?? []
  const asked = new URLSearchParams(query)
  expect(Number(asked.get('timeoutSeconds'))).toBeGreaterThanOrEqual(240)
  expect(asked.get('allowWatchBookmarks')).toBe('true')
})
