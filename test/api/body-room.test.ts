// The limit on bodies of a team that are being read (decisions/limits.md): a client that sends slowly holds what it has
// sent.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { TEAM_BODY_BYTES } from '../../src/api/operation/body-room.ts'
import { limits } from '../../src/contract/limits.ts'
import { boundsIn } from '../support/logged.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Answer, type Service, startService } from '../support/service.ts'

const PATIENCE = { timeout: 30_000, interval: 50 }
const BODY_BYTES = 2 * limits.fileBytes
const BODIES = TEAM_BODY_BYTES / BODY_BYTES
const PATHS = ['/v1/units/unit_0000/exec', '/mcp']

let service: Service
let sender: TestTeam
let sockets: Socket[]

beforeEach(async () => {
  // So high that no team's pace keeps bodies from being sent (src/api/operation/team-pace.ts).
  const rates = { requests: 100_000, creations: 100_000, execs: 100_000 }
  service = await startService({ rates, loops: false })
  sender = await makeTeam(service)
  sockets = []
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await service.close()
})

async function beginBody(path: string): Promise<void> {
  const { hostname, port } = new URL(service.baseUrl)
  const socket = connect(Number(port), hostname)
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${sender.key}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    `content-length: ${BODY_BYTES}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n{`)
}

const exec = async (key: string) =>
  await service.call('POST', '/v1/units/unit_0000/exec', { key, body: { cmd: ['true'] } })

/** Sends bodies until there is no room for another. Returns the refusal. */
async function fillRoom(path: string): Promise<Answer> {
  for (let body = 0; body < BODIES; body += 1) await beginBody(path)
  return await vi.waitFor(async () => {
    const answer = await exec(sender.key)
    // The room of this call may have been what one of the bodies was refused for.
    if (answer.status === 404) await beginBody(path)
    expect(answer.status).not.toBe(404)
    return answer
  }, PATIENCE)
}

test.each(PATHS)('bodies that are not sent to their end have a limit for each team, at %s', async (path) => {
  const other = await makeTeam(service)
  expect(await fillRoom(path)).toMatchObject({
    status: 429,
    body: { error: { code: 'quota_exceeded', message: expect.stringContaining('bodies of 128 MB at once') } },
  })
  expect(boundsIn(service.logged)).toEqual([['bodies at once', sender.teamId]])
  // A call without a body needs no room, and other teams have theirs.
  expect((await service.call('GET', '/v1/units', { key: sender.key })).status).toBe(200)
  expect((await exec(other.key)).status).toBe(404)

  for (const socket of sockets) socket.destroy()
  await vi.waitFor(async () => expect((await exec(sender.key)).status).toBe(404), PATIENCE)
})

test('all teams together have a limit on bodies, beyond which a call gets 503', async () => {
  for (let team = 0; team < 4; team += 1) {
    sender = await makeTeam(service)
    await fillRoom('/v1/units/unit_0000/exec')
  }
  const another = await makeTeam(service)
  expect(await exec(another.key)).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
})
