// The share of calls of a team beside other teams (decisions/limits.md).

import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { boundsIn } from '../support/logged.ts'
import { makeTeam, type TestTeam } from '../support/make.ts'
import { contractRates, type Service, startService } from '../support/service.ts'

const BODIES = 60
const TWO_MEGABYTES = { cmd: Array.from({ length: 60 }, () => 'x'.repeat(32_000)) }

let service: Service
let sender: TestTeam
let ended: AbortController

beforeEach(async () => {
  service = await startService({ rates: contractRates, loops: false })
  sender = await makeTeam(service)
  ended = new AbortController()
})
afterEach(async () => {
  ended.abort()
  await service.close()
})

function send(): Promise<{ status: number; message: string; retryAfter: string | null }>[] {
  return Array.from({ length: BODIES }, async () => {
    const { key } = sender
    const sent = { key, body: TWO_MEGABYTES, signal: ended.signal }
    const response = await service.fetch('POST', '/v1/units/unit_0000/exec', sent)
    const { error } = (await response.json()) as { error: { message: string } }
    return {
      status: response.status,
      message: error.message,
      retryAfter: response.headers.get('retry-after'),
    }
  })
}

/** Calls several times a second, far below its own share, until the test's calls have ended. */
async function keepCalling({ key }: TestTeam): Promise<void> {
  while (!ended.signal.aborted) {
    expect((await service.call('GET', '/v1/units', { key })).status).toBe(200)
    await delay(200)
  }
}

test('large bodies of a team beside another team wait, and are refused once they would wait for long', async () => {
  const other = await makeTeam(service)
  const calling = keepCalling(other)
  const refused = await Promise.any(
    send().map(async (sent) => {
      const answer = await sent
      return answer.status === 429 ? answer : await Promise.reject(new Error(`${answer.status}`))
    }),
  )
  expect(refused.message).toMatch(
    /more calls than its share while other teams call too; try again in \d+ seconds/,
  )
  expect(Number(refused.retryAfter)).toBeGreaterThan(10)
  expect(boundsIn(service.logged)).toEqual([['calls a second beside other teams', sender.teamId]])
  // The other team's calls went on.
  ended.abort()
  await calling
})

test('the same bodies of a team that calls alone are all read', async () => {
  const answers = await Promise.all(send())
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 404))
})
