import { describe, expect, it } from 'vitest'
import type { Clock } from './clock.ts'
import { createServiceClock, type Jump } from './service-clock.ts'

const NOON = Date.parse('2026-03-01T12:00:00Z')

/** A clock that moves only when the test moves it. */
function stillClock(): Clock & { wallMs: number; passedMs: number } {
  const clock = {
    wallMs: NOON,
    passedMs: 5_000,
    boot: 'one',
    now: () => new Date(clock.wallMs),
    monotonicMs: () => clock.passedMs,
    sleep: (_ms: number, signal?: AbortSignal) =>
      new Promise<void>((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
  }
  return clock
}

const pass = (clock: ReturnType<typeof stillClock>, ms: number) => {
  clock.wallMs += ms
  clock.passedMs += ms
}

describe('the service clock', () => {
  it.each([3_600_000, -3_600_000, 86_400_000, -86_400_000])(
    'ignores a wall clock jump of %i ms until it is told to adopt it',
    async (jump) => {
      const source = stillClock()
      const clock = createServiceClock(source)
      source.wallMs += jump
      pass(source, 1_000)
      expect(clock.now()).toEqual(new Date(NOON + 1_000))
      expect(clock.jumpedMs()).toBe(jump)

      const seen: Jump[] = []
      await clock.adoptJump(async (told) => void seen.push(told))
      const from = new Date(NOON + 1_000)
      expect(seen).toEqual([{ from, to: source.now(), offsetMs: NOON - 5_000 + jump }])
      expect(clock.now()).toEqual(source.now())
      expect(clock.jumpedMs()).toBe(0)
    },
  )

  it('follows small steps and slow drift on its own', () => {
    const source = stillClock()
    const clock = createServiceClock(source)
    for (let step = 0; step < 1_000; step++) {
      pass(source, 1_000)
      source.wallMs += 500
      expect(clock.jumpedMs()).toBe(0)
      expect(clock.now()).toEqual(source.now())
    }
  })

  it('keeps its time when a jump could not be applied to stored times', async () => {
    const source = stillClock()
    const clock = createServiceClock(source)
    source.wallMs += 60_000
    const failing = clock.adoptJump(async () => {
      throw new Error('no database')
    })
    await expect(failing).rejects.toThrow('no database')
    expect(clock.now()).toEqual(new Date(NOON))
    expect(await clock.withStableTime(async () => clock.now())).toEqual(new Date(NOON))
  })

  it('adopts a jump between two operations that hold stable time, never during one', async () => {
    const source = stillClock()
    const clock = createServiceClock(source)
    source.wallMs += 60_000
    const order: string[] = []
    const first = Promise.withResolvers<void>()
    const holding = clock.withStableTime(async () => {
      order.push('first begins')
      await first.promise
      order.push('first ends')
    })
    const following = clock.adoptJump(async () => void order.push('moved'))
    const second = clock.withStableTime(async () => void order.push(`second at ${clock.now().toISOString()}`))
    await new Promise((resolve) => setImmediate(resolve))
    first.resolve()
    await Promise.all([holding, following, second])
    expect(order).toEqual(['first begins', 'first ends', 'moved', 'second at 2026-03-01T12:01:00.000Z'])
  })

  it('resumes with the offset of an earlier process and then reports a jump that happened in between', () => {
    const source = stillClock()
    const left = createServiceClock(source).offsetMs()
    source.wallMs -= 3_600_000
    const clock = createServiceClock(source)
    expect(clock.jumpedMs()).toBe(0)
    clock.resume(left)
    expect(clock.jumpedMs()).toBe(-3_600_000)
    expect(clock.now()).toEqual(new Date(NOON))
  })
})
