import { expect, it } from 'vitest'
import { createTestClock } from '../../test/support/clock.ts'
import { silentLog } from './log.ts'
import { runLoop } from './loop.ts'

const nap = async (ms = 1) => await new Promise((resolve) => setTimeout(resolve, ms))

// Reliability F29: each job is a loop of its own.
it('a loop continues after a failed run, never overlaps, and stops when aborted', async () => {
  const clock = createTestClock()
  const stop = new AbortController()
  let rounds = 0
  let under = 0
  const loop = runLoop(
    {
      name: 'test',
      everyMs: 1,
      timeoutMs: 60_000,
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

/** Starts a loop whose runs never end if `hangs` returns true for their number. */
function hangingLoop(hangs: (round: number) => boolean) {
  const clock = createTestClock()
  const stop = new AbortController()
  const state = { rounds: 0 }
  const run = async () => {
    state.rounds += 1
    if (hangs(state.rounds)) await new Promise<never>(() => {})
  }
  const loop = { name: 'test', everyMs: 1, timeoutMs: 60_000, run }
  const ended = runLoop(loop, { clock, log: silentLog, signal: stop.signal })
  /** Advances the clock in small steps, as for a process that is running and not suspended. */
  const passMinute = async () => {
    for (let seconds = 0; seconds < 60; seconds += 5) {
      clock.advance(5_000)
      await nap()
    }
  }
  return { clock, stop, state, ended, passMinute }
}

it('a run that hangs is abandoned at its timeout, and the loop continues', async () => {
  const { stop, state, ended, passMinute } = hangingLoop((round) => round === 2 || round === 4)
  await expect.poll(() => state.rounds).toBe(2)
  await passMinute()
  await expect.poll(() => state.rounds).toBe(4)
  await passMinute()
  await expect.poll(() => state.rounds).toBeGreaterThan(5)
  stop.abort()
  await ended
})

it('a loop throws after three timeouts in a row', async () => {
  const { state, ended, passMinute } = hangingLoop(() => true)
  const thrown = expect(ended).rejects.toThrow('3 runs in a row of the job "test" timed out')
  for (const round of [1, 2, 3]) {
    await expect.poll(() => state.rounds).toBe(round)
    await passMinute()
  }
  await thrown
})

it('a run is not taken for hung when the process itself was suspended for an hour', async () => {
  const { clock, stop, state, ended, passMinute } = hangingLoop((round) => round === 1)
  clock.advance(3_600_000)
  await nap(20)
  expect(state.rounds).toBe(1)
  stop.abort()
  await passMinute()
  await ended
})
