import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { lineSink } from '../../test/support/logged.ts'
import { SLOW_MS, timeSteps } from './slow-steps.ts'

function setUp() {
  let nowMs = 0
  const lines: string[] = []
  const log = pino(lineSink(lines))
  const steps = timeSteps({ monotonicMs: () => nowMs })
  const takes = (step: string, ms: number) => steps.measure(step, async () => void (nowMs += ms))
  return { steps, takes, log, logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) }
}

it('logs one line with each step if the whole was slow', async () => {
  const { steps, takes, log, logged } = setUp()
  await takes('image', 12)
  await takes('start', SLOW_MS)
  await takes('start', 400.4)
  steps.end(log, 'create was slow', { unitId: 'u1' })
  expect(logged()).toEqual([
    expect.objectContaining({
      level: 40,
      msg: 'create was slow',
      unitId: 'u1',
      totalMs: 5412,
      stepsMs: { image: 12, start: 5400 },
    }),
  ])
})

it('logs nothing if the whole was not slow', async () => {
  const { steps, takes, log, logged } = setUp()
  await takes('start', SLOW_MS)
  steps.end(log, 'create was slow', {})
  expect(logged()).toEqual([])
})

it('counts the time of a step that fails, and throws what it threw', async () => {
  const clock = createTestClock()
  const lines: string[] = []
  const steps = timeSteps(clock)
  const failing = steps.measure('start', async () => {
    clock.advance(SLOW_MS + 1)
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  steps.end(pino(lineSink(lines)), 'create was slow', {})
  expect(lines.join()).toMatch(/"stepsMs":\{"start":50\d\d\}/)
})

it('logs once, and counts nothing after the end', async () => {
  const { steps, takes, log, logged } = setUp()
  await takes('start', SLOW_MS + 1)
  steps.end(log, 'create was slow', {})
  await takes('late', SLOW_MS)
  steps.end(log, 'create was slow', {})
  expect(logged()).toHaveLength(1)
})
