// S5 for a connected client: everything it has open ends within five seconds after its person revokes it, by the
// service time. Time stands still here unless a test advances it, so what takes longer never ends.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { AgentList } from '../../src/contract/agent.ts'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { freezeSleeps, type FrozenSleeps } from '../support/frozen-sleeps.ts'
import { makeProcess, makeSession, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { connect, refresh, type TestClient, type Tokens } from '../support/oauth.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let time: FrozenSleeps
let team: TestTeam
let by: { cookie: string; headers: Record<string, string> }
let client: TestClient
let tokens: Tokens

beforeAll(async () => {
  service = await startService({ loops: false })
  time = freezeSleeps(service.clock)
})
afterAll(async () => {
  time.thaw()
  await service.close()
})
beforeEach(async () => {
  team = await makeTeam(service)
  by = { cookie: await makeSession(service, team), headers: { origin: service.baseUrl } }
  ;({ client, tokens } = await connect(service, by.cookie))
})

type Open = { name: string; ended: () => boolean; text: () => string }

/** Reads a response to its end in the background. */
function follow(name: string, response: Response): Open {
  let text = ''
  let hasEnded = false
  const read = async () => {
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part
    hasEnded = true
  }
  void read().catch(() => (hasEnded = true))
  return { name, ended: () => hasEnded, text: () => text }
}

/** Opens every kind of stream that a client can have, each with some output. */
async function openEverything(): Promise<Open[]> {
  const key = tokens.access_token
  const cmd = ['sh', '-c', 'echo begun; sleep infinity']
  const { id } = await makeUnit(service, team, { name: 'busy', cmd, sleep: 'never' })
  const process = await makeProcess(service, team, id, { cmd })
  const streaming = { key, headers: { accept: 'text/event-stream' } }
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: 'run_command',
      arguments: { unit: 'busy', argv: cmd, timeout_seconds: 3600 },
      _meta: { progressToken: 1 },
    },
  }
  const mcp = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': '2025-06-18',
  }
  const of = async (name: string, method: string, path: string, sent: object = {}) =>
    follow(name, await service.fetch(method, path, { ...streaming, ...sent }))
  const open = [
    await of('a command', 'POST', `/v1/units/${id}/exec`, { body: { cmd, timeoutMs: 3600 * SECOND } }),
    await of('a log', 'GET', `/v1/units/${id}/logs?follow=true`),
    await of('the output of a process', 'GET', `/v1/units/${id}/processes/${process}/output?follow=true`),
    await of('a tool call', 'POST', '/mcp', { key, headers: mcp, body: call }),
  ]
  for (const each of open.slice(0, 3)) await expect.poll(each.text).toContain('begun')
  const running = () => service.engine.calls.filter((each) => each.operation === 'exec' && each.id === id)
  await expect.poll(() => running().length).toBe(2)
  return open
}

async function agentId(): Promise<string> {
  const { body } = await service.call<AgentList>('GET', '/v1/agents', { key: team.key })
  return body.agents.find(({ kind }) => kind === 'oauth')?.id ?? ''
}

const revoke = async () => await service.call('DELETE', `/v1/agents/${await agentId()}`, by)
const expire = async () => {
  const expiresAt = new Date(service.clock.now().getTime() + MINUTE).toISOString()
  const sent = { ...by, body: { policy: { expiresAt } } }
  const changed = await service.call('PATCH', `/v1/agents/${await agentId()}`, sent)
  // No wait is any longer by this.
  service.clock.advance(MINUTE)
  return changed
}

it.each([
  ['revoked', revoke],
  ['given a policy that ends', expire],
])('everything that a client has open ends within five seconds when it is %s', async (_how, end) => {
  const open = await openEverything()
  // The streams are checked repeatedly, and stay open.
  for (let times = 0; times < 10; times++) await time.pass(4 * SECOND)
  expect(open.map(({ ended }) => ended())).toEqual(open.map(() => false))
  expect((await end()).status).toBe(200)
  await expect
    .poll(async () => (await service.call('GET', '/v1/units', { key: tokens.access_token })).status)
    .toBe(401)
  await time.pass(5 * SECOND)
  for (const { name, ended, text } of open) {
    await expect.poll(ended).toBe(true)
    expect([name, text()]).toEqual([name, expect.stringContaining('unauthorized')])
  }
  expect(await refresh(service, client, tokens.refresh_token)).toMatchObject({ status: 400 })
  const rows = service.app.db
    .selectFrom('audit')
    .select(['action', 'status'])
    .where('team_id', '=', team.teamId)
    .where('status', '=', 401)
    .orderBy('action')
  await expect
    .poll(async () => (await rows.execute()).map(({ action }) => action))
    .toEqual(['process.output', 'unit.exec', 'unit.exec', 'unit.logs'])
})

it('a command without a stream ends within five seconds when its client is revoked', async () => {
  const { id } = await makeUnit(service, team, { name: 'busy' })
  const body = { cmd: ['sleep', 'infinity'], timeoutMs: 3600 * SECOND }
  const running = service.call('POST', `/v1/units/${id}/exec`, { key: tokens.access_token, body })
  await expect.poll(() => service.app.activity.uses.of(id)).toBe(1)
  await revoke()
  await time.pass(5 * SECOND)
  expect(await running).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
  await expect.poll(() => service.app.activity.uses.of(id)).toBe(0)
})

it('a narrower policy leaves open streams alone, and refuses new calls', async () => {
  const open = await openEverything()
  const body = { policy: { allowedSizes: [], maxConcurrentUnits: 0, dailySpendCapCents: 0 } }
  expect((await service.call('PATCH', `/v1/agents/${await agentId()}`, { ...by, body })).status).toBe(200)
  for (let times = 0; times < 3; times++) await time.pass(5 * SECOND)
  expect(open.map(({ ended }) => ended())).toEqual(open.map(() => false))
  const spec = { name: 'another', image: 'node:22' }
  const refused = await service.call('POST', '/v1/units', { key: tokens.access_token, body: { spec } })
  expect(refused.status).toBe(402)
  await revoke()
  await time.pass(5 * SECOND)
  for (const { ended } of open) await expect.poll(ended).toBe(true)
})

it.each([
  ['units at once', { maxConcurrentUnits: 0 }],
  ['spend a day', { dailySpendCapCents: 0 }],
])('a policy with less %s stops the units beyond it, and ends their commands', async (_of, policy) => {
  const agent = { key: tokens.access_token }
  const { id } = await makeUnit(service, agent, { name: 'own', sleep: 'never' })
  const other = await makeUnit(service, team, { name: 'of-the-team', sleep: 'never' })
  // A unit that ignores its signal runs until it is killed.
  const stopping = Promise.withResolvers<void>()
  const stop = service.engine.stop.bind(service.engine)
  service.engine.stop = async (ref, graceMs) => {
    if (ref.id === id) await stopping.promise
    await stop(ref, graceMs)
  }
  const command = async (unit: string) => {
    const body = { cmd: ['sh', '-c', 'echo begun; sleep infinity'], timeoutMs: 3600 * SECOND }
    const sent = { ...agent, headers: { accept: 'text/event-stream' }, body }
    return follow('a command', await service.fetch('POST', `/v1/units/${unit}/exec`, sent))
  }
  const [own, others] = [await command(id), await command(other.id)]
  for (const { text } of [own, others]) await expect.poll(text).toContain('begun')
  await time.pass(5 * SECOND)
  expect([own.ended(), others.ended()]).toEqual([false, false])
  const changed = await service.call('PATCH', `/v1/agents/${await agentId()}`, { ...by, body: { policy } })
  expect(changed.status).toBe(200)
  await time.pass(5 * SECOND)
  await expect.poll(own.ended).toBe(true)
  expect(own.text()).toContain('quota_exceeded')
  expect(others.ended()).toBe(false)
  service.engine.stop = stop
  stopping.resolve()
  await revoke()
  await time.pass(5 * SECOND)
  await expect.poll(others.ended).toBe(true)
})
