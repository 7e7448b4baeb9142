import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createTestClock } from '../../../test/support/clock.ts'
import { BURST_S, CREDENTIALS, costOfBody, createTeamPace } from './team-pace.ts'

const REQUESTS_A_MINUTE = 300
const CALLS_A_SECOND = (CREDENTIALS * REQUESTS_A_MINUTE) / 60
/** Of a body. */
const NINE_CALLS = 9 / costOfBody(1)
const BURST_CALLS = BURST_S * CALLS_A_SECOND

function createPace() {
  let nowMs = 0
  const waits: number[] = []
  const pace = createTeamPace(
    {
      config: { rates: { requests: REQUESTS_A_MINUTE } },
      log: pino({ level: 'silent' }),
      clock: createTestClock(),
    },
    { monotonicMs: () => nowMs, sleep: async (ms) => void waits.push(Math.round(ms)) },
  )
  const call = async (teamId: string, bodyBytes = 0, signal = new AbortController().signal) =>
    await pace.wait({ teamId, cost: 1 + costOfBody(bodyBytes), signal })
  return { waits, call, pass: (ms: number) => void (nowMs += ms) }
}

it('lets a team make a burst of calls beside another team, and after it so many a second', async () => {
  const { waits, call, pass } = createPace()
  for (let made = 0; made < BURST_CALLS; made += 1) {
    await call('other')
    await call('many')
  }
  expect(waits).toEqual([])
  await call('many')
  await call('many')
  expect(waits).toEqual([1000 / CALLS_A_SECOND, 2000 / CALLS_A_SECOND])
  pass(1000)
  await call('other')
  for (let made = 0; made < CALLS_A_SECOND - 2; made += 1) await call('many')
  expect(waits).toHaveLength(2)
  await call('many')
  expect(waits).toHaveLength(3)
})

it('does not slow a team that calls alone', async () => {
  const { waits, call, pass } = createPace()
  for (let made = 0; made < 20 * BURST_CALLS; made += 1) await call('one')
  await call('other')
  pass(5000)
  for (let made = 0; made < 2 * BURST_CALLS; made += 1) await call('one')
  expect(waits).toEqual([])
})

it('counts the bytes of a body, and refuses what would wait for more than ten seconds', async () => {
  const { waits, call } = createPace()
  await call('other')
  const bodies = BURST_CALLS / 10
  for (let sent = 0; sent < bodies; sent += 1) await call('many', NINE_CALLS)
  expect(waits).toEqual([])
  await call('many', NINE_CALLS)
  expect(waits).toEqual([(10 / CALLS_A_SECOND) * 1000])
  const refusal = await (async () => {
    for (;;) await call('many', NINE_CALLS)
  })().catch((error: unknown) => error)
  expect(refusal).toMatchObject({ status: 429, retryAfterS: 11 })
  expect(Math.max(...waits)).toBe(10_000)
})
