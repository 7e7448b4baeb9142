// The limit on concurrent calls of a team (decisions/limits.md).

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { LIMIT_REACHED } from '../../src/lib/limit-reached.ts'
import { boundsIn } from '../support/logged.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const PATIENCE = { timeout: 20_000, interval: 20 }

let service: Service
afterEach(async () => await service.close())

async function teamWithUnit(): Promise<TestTeam & { exec: string; logs: string }> {
  const team = await makeTeam(service)
  const { id } = await makeUnit(service, team)
  return { ...team, exec: `/v1/units/${id}/exec`, logs: `/v1/units/${id}/logs` }
}

/** Returns a function that ends it. */
async function beginCommand({ exec, key }: { exec: string; key: string }): Promise<() => void> {
  const began = commandsBegun()
  const caller = new AbortController()
  const body = { cmd: ['sleep', 'infinity'] }
  service.fetch('POST', exec, { key, body, signal: caller.signal }).catch(() => {})
  await vi.waitFor(() => expect(commandsBegun()).toBe(began + 1), PATIENCE)
  return () => caller.abort()
}

const commandsBegun = () => service.engine.calls.filter(({ operation }) => operation === 'exec').length

async function run({ exec, key }: { exec: string; key: string }) {
  return await service.call<{ error: { code: string; message: string } }>('POST', exec, {
    key,
    body: { cmd: ['true'] },
  })
}

test('a team may run two commands at once, and its limit does not affect other teams', async () => {
  service = await startService({ commandsAtOnce: 2 })
  const [crowded, other] = [await teamWithUnit(), await teamWithUnit()]
  const [giveUp] = [await beginCommand(crowded), await beginCommand(crowded)]

  const refused = await run(crowded)
  expect(refused).toMatchObject({
    status: 429,
    body: {
      error: {
        code: 'quota_exceeded',
        message:
          'The team has 2 commands in progress, which is the limit; try again when one of them has ended.',
      },
    },
  })
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(service.logged.some((line) => line.includes(LIMIT_REACHED) && line.includes(crowded.teamId))).toBe(
    true,
  )
  // Calls that run no command go on.
  expect((await service.call('GET', crowded.logs, { key: crowded.key })).status).toBe(200)
  expect((await run(other)).status).toBe(200)

  giveUp()
  await vi.waitFor(async () => expect((await run(crowded)).status).toBe(200), PATIENCE)
})

test('all teams together have a limit on commands, beyond which a call gets 503', async () => {
  service = await startService({ commandsAtOnce: 1 })
  for (let team = 0; team < 4; team += 1) await beginCommand(await teamWithUnit())
  expect(await run(await teamWithUnit())).toMatchObject({
    status: 503,
    body: { error: { code: 'unavailable' } },
  })
})

test('a command counts until its answer is delivered, also to a slow reader', async () => {
  service = await startService({ commandsAtOnce: 1 })
  const team = await teamWithUnit()
  const socket = await sendAndReadNothing(team)
  await vi.waitFor(() => expect(commandsBegun()).toBe(1), PATIENCE)
  // Its head has arrived, so all of its output is held in memory.
  await once(socket, 'readable')
  expect((await run(team)).status).toBe(429)
  socket.destroy()
  await vi.waitFor(async () => expect((await run(team)).status).toBe(200), PATIENCE)
})

/** Sends a command whose answer is 6 MB of JSON. */
async function sendAndReadNothing({ exec, key }: { exec: string; key: string }): Promise<Socket> {
  const { hostname, port } = new URL(service.baseUrl)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const body = JSON.stringify({ cmd: ['head', '-c', String(1024 * 1024)] })
  const head = [
    `POST ${exec} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return socket
}

test('a warning is logged for a team with many calls that wait to read logs', async () => {
  service = await startService()
  const [crowd, other] = [await teamWithUnit(), await teamWithUnit()]
  const release = service.engine.hang('logs', { times: 10 })
  const reading = Array.from({ length: 9 }, () => service.call('GET', crowd.logs, { key: crowd.key }))
  reading.push(service.call('GET', other.logs, { key: other.key }))
  const told = [['readings of logs that wait', crowd.teamId]]
  await vi.waitFor(() => expect(boundsIn(service.logged)).toEqual(told), PATIENCE)
  release()
  await Promise.all(reading)
})
