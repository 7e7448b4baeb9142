// Frames that a client of E2B would not send: numbers that are too long, and calls to a sandbox that sleeps.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

type Access = { sandboxID: string; envdAccessToken: string }

let service: Service
let team: TestTeam
let sandbox: Access
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  sandbox = await create()
})
afterAll(async () => await service.close())

async function create(): Promise<Access> {
  const headers = { 'x-api-key': team.key }
  return (await service.call<Access>('POST', '/e2b/v2/sandboxes', { headers, body: { templateID: 'base' } }))
    .body
}

/** What it answers, as text: an error is in the answer itself, or in the last frame of a stream. */
async function send({ sandboxID, envdAccessToken }: Access, method: string, text: string, isStream: boolean) {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(Buffer.byteLength(text), 1)
  const body = isStream ? Buffer.concat([head, Buffer.from(text)]) : Buffer.from(text)
  const answer = await fetch(`${service.baseUrl}/e2b/sandbox/${method}`, {
    method: 'POST',
    headers: {
      'content-type': isStream ? 'application/connect+json' : 'application/json',
      'connect-protocol-version': '1',
      'e2b-sandbox-id': sandboxID,
      'x-access-token': envdAccessToken,
    },
    body: new Uint8Array(body),
  })
  return { status: answer.status, text: await answer.text() }
}

it.each([
  ['process.Process/SendSignal', '{"process":{"pid":9223372036854775808},"signal":"SIGNAL_SIGKILL"}'],
  ['process.Process/SendSignal', '{"process":{"pid":"9223372036854775808"},"signal":"SIGNAL_SIGKILL"}'],
  ['process.Process/SendSignal', '{"process":{"pid":-1},"signal":"SIGNAL_SIGKILL"}'],
  ['process.Process/SendSignal', '{"process":{"pid":1.5},"signal":9}'],
  ['process.Process/Update', '{"process":{"pid":1},"pty":{"size":{"cols":4294967296,"rows":1}}}'],
  ['filesystem.Filesystem/ListDir', '{"path":"/","depth":18446744073709551615}'],
  ['filesystem.Filesystem/ListDir', '{"path":"/","depth":1e400}'],
])('%s with %s is an invalid argument', async (method, text) => {
  const answer = await send(sandbox, method, text, false)
  expect([answer.status, (JSON.parse(answer.text) as { code: string }).code]).toEqual([
    400,
    'invalid_argument',
  ])
})

it.each([
  ['process.Process/Start', '{"process":{"cmd":"true"}}', true],
  ['process.Process/Connect', '{"process":{"pid":1}}', true],
  ['filesystem.Filesystem/WatchDir', '{"path":"/"}', true],
  ['process.Process/List', '{}', false],
  ['filesystem.Filesystem/Stat', '{"path":"/"}', false],
])('%s of a sandbox that sleeps is refused, and wakes it not', async (method, text, isStream) => {
  const asleep = await create()
  const headers = { 'x-api-key': team.key }
  const paused = await service.fetch('POST', `/e2b/sandboxes/${asleep.sandboxID}/pause`, {
    headers,
    body: {},
  })
  expect(paused.status).toBe(204)
  const answer = await send(asleep, method, text, isStream)
  const isUnknown = method.endsWith('Connect')
  expect(answer.text).toMatch(isUnknown ? /"code":"not_found"/ : /"code":"unavailable"/)
  expect(answer.text).toMatch(/not found|no process/)
  expect(answer.status).toBe(isStream ? 200 : 503)
  const unit = await service.call<{ state: string }>('GET', `/v1/units/unit_${asleep.sandboxID}`, {
    key: team.key,
  })
  expect(unit.body.state).toBe('sleeping')
})
