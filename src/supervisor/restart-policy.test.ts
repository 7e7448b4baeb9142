import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { superviseService, type Service, type Running, waitAfter } from './restart-policy.ts'

/** A clock whose sleeps return at once and advance it. */
function sleeplessClock(): Clock & { slept: number[]; pass: (ms: number) => void } {
  let now = 0
  const slept: number[] = []
  return {
    slept,
    pass: (ms) => {
      now += ms
    },
    now: () => new Date(now),
    monotonicMs: () => now,
    boot: 'test',
    sleep: async (ms, signal) => {
      signal?.throwIfAborted()
      slept.push(ms)
      now += ms
    },
  }
}

type Attempt = { end: (how: string) => void; stopped: boolean }

/** A service whose starts succeed or throw in the given order. */
function scriptedPart(outcomes: ('starts' | 'fails')[]): {
  part: Service
  attempts: Attempt[]
  next: () => Promise<Attempt>
} {
  const attempts: Attempt[] = []
  let waiting = Promise.withResolvers<Attempt>()
  const start = async (): Promise<Running> => {
    if (outcomes.shift() === 'fails') throw new Error('no socket')
    const ended = Promise.withResolvers<string>()
    const attempt = { end: ended.resolve, stopped: false }
    attempts.push(attempt)
    waiting.resolve(attempt)
    const stop = async () => {
      attempt.stopped = true
      ended.resolve('was stopped')
    }
    return { ended: ended.promise, stop }
  }
  const next = () => {
    waiting = Promise.withResolvers<Attempt>()
    return waiting.promise
  }
  return { part: { name: 'server', start }, attempts, next }
}

const { signal } = new AbortController()

describe('a supervised service', () => {
  it('throws if its first start fails', async () => {
    const { part } = scriptedPart(['fails'])
    await expect(superviseService(part, { clock: sleeplessClock(), log: silentLog, signal })).rejects.toThrow(
      'no socket',
    )
  })

  it('is restarted when it ends, with delays that double while starts fail', async () => {
    const clock = sleeplessClock()
    const { part, attempts, next } = scriptedPart(['starts', 'fails', 'fails', 'starts'])
    const kept = await superviseService(part, { clock, log: silentLog, signal })
    const again = next()
    attempts[0]?.end('was ended by SIGKILL')
    await again
    expect(clock.slept).toEqual([250, 500, 1000])
    await kept.stop()
    expect(attempts.map(({ stopped }) => stopped)).toEqual([expect.any(Boolean), true])
  })

  it('is given up with a reason after ten failed starts in a row', async () => {
    const clock = sleeplessClock()
    const { part, attempts } = scriptedPart(['starts', ...Array.from({ length: 10 }, () => 'fails' as const)])
    const kept = await superviseService(part, { clock, log: silentLog, signal })
    attempts[0]?.end('ended with exit code 1')
    expect(await kept.failed).toBe('The server could not be started 10 times in a row: no socket')
    expect(clock.slept).toHaveLength(10)
    await kept.stop()
  })

  it('is restarted without a growing delay once it has run for ten seconds', async () => {
    const clock = sleeplessClock()
    const { part, attempts, next } = scriptedPart(['starts', 'starts', 'starts', 'starts'])
    const kept = await superviseService(part, { clock, log: silentLog, signal })
    for (const ranMs of [10_000, 9_000, 10_000]) {
      const again = next()
      // Let the supervisor record the start time.
      await setImmediate()
      clock.pass(ranMs)
      attempts.at(-1)?.end('was ended by SIGKILL')
      await again
    }
    expect(clock.slept).toEqual([250, 500, 250])
    await kept.stop()
  })

  it('is not given up because of kills: only failed starts count', async () => {
    const clock = sleeplessClock()
    const lives = Array.from({ length: 12 }, () => 'starts' as const)
    const { part, attempts, next } = scriptedPart([...lives, 'fails', 'starts'])
    const kept = await superviseService(part, { clock, log: silentLog, signal })
    for (const _life of lives) {
      const again = next()
      attempts.at(-1)?.end('was ended by SIGKILL')
      await again
    }
    expect(attempts).toHaveLength(lives.length + 1)
    await kept.stop()
  })

  it('is not restarted after stop()', async () => {
    const { part, attempts } = scriptedPart(['starts', 'starts'])
    const kept = await superviseService(part, { clock: sleeplessClock(), log: silentLog, signal })
    await kept.stop()
    expect(attempts).toHaveLength(1)
  })
})

describe('waitAfter', () => {
  it('doubles the delay up to 30 seconds', () => {
    expect([0, 1, 2, 7, 8, 100].map(waitAfter)).toEqual([250, 500, 1000, 30_000, 30_000, 30_000])
  })
})
