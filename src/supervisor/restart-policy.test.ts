import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log.ts'
import { superviseService, type Service, type Running, waitAfter } from './restart-policy.ts'

/** Time that passes only as far as it is slept or told to, at once. */
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

/** A part whose starts succeed or throw as told, one after the other. */
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

describe('a part that is kept running', () => {
  it('fails at once when its first start does', async () => {
    const { part } = scriptedPart(['fails'])
    await expect(superviseService(part, { clock: sleeplessClock(), log: silentLog, signal })).rejects.toThrow(
      'no socket',
    )
  })

  it('is started again when it ends, after a wait that doubles while it fails', async () => {
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

  it('is given up with its reason when it fails ten times in a row', async () => {
    const clock = sleeplessClock()
    const { part, attempts } = scriptedPart(['starts', ...Array.from({ length: 10 }, () => 'fails' as const)])
    const kept = await superviseService(part, { clock, log: silentLog, signal })
    attempts[0]?.end('ended with exit code 1')
    expect(await kept.failed).toBe('The server could not be started 10 times in a row: no socket')
    expect(clock.slept).toHaveLength(10)
    await kept.stop()
  })

  it('is started again at once when it has run for a while', async () => {
    const clock = sleeplessClock()
    const { part, attempts, next } = scriptedPart(['starts', 'starts', 'starts', 'starts'])
    const kept = await superviseService(part, { clock, log: silentLog, signal })
    for (const ranMs of [10_000, 9_000, 10_000]) {
      const again = next()
      // Its keeper has taken note of when it began.
      await setImmediate()
      clock.pass(ranMs)
      attempts.at(-1)?.end('was ended by SIGKILL')
      await again
    }
    expect(clock.slept).toEqual([250, 500, 250])
    await kept.stop()
  })

  it('is not given up for a failed start, however often it has been killed', async () => {
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

  it('is not started again once it is stopped', async () => {
    const { part, attempts } = scriptedPart(['starts', 'starts'])
    const kept = await superviseService(part, { clock: sleeplessClock(), log: silentLog, signal })
    await kept.stop()
    expect(attempts).toHaveLength(1)
  })
})

describe('waitAfter', () => {
  it('doubles and stays at half a minute', () => {
    expect([0, 1, 2, 7, 8, 100].map(waitAfter)).toEqual([250, 500, 1000, 30_000, 30_000, 30_000])
  })
})
