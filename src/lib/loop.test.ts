import { expect, it } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { silentLog } from './log.ts'
import { runLoop } from './loop.ts'

it('a loop goes on after a failed round, never overlaps, and ends when told to', async () => {
  const clock = createTestClock()
  const stop = new AbortController()
  let rounds = 0
  let under = 0
  const loop = runLoop(
    {
      name: 'test',
      everyMs: 1,
      run: async () => {
        under += 1
        expect(under).toBe(1)
        await clock.sleep(1)
        under -= 1
        rounds += 1
        if (rounds === 1) throw new Error('a bad round')
        if (rounds === 4) stop.abort()
      },
    },
    { clock, log: silentLog, signal: stop.signal },
  )
  await loop
  expect(rounds).toBe(4)
})
