import { describe, expect, test } from 'vitest'
import { createShares, type Shares } from './shares.ts'

const UNIT_MS = 0.4

/** A thread that works as long as it is told: `begin` waits for a turn, and `done` says how long each machine's work took. */
function openThread() {
  let nowMs = 0
  let busyMs = 0
  const wakes: (() => void)[] = []
  const clock = {
    monotonicMs: () => nowMs,
    sleep: async (_ms: number) => await new Promise<void>((resolve) => wakes.push(resolve)),
  }
  const shares: Shares = createShares(clock, () => busyMs)
  const done: Record<string, number> = {}
  const begin = async (team: string, machine: string, units: number) => {
    await shares.turn({ team, machine }, units)
    busyMs += units * UNIT_MS
    done[machine] = (done[machine] ?? 0) + units * UNIT_MS
  }
  const pass = async (ms: number) => {
    for (let each = 0; each < ms; each += 1) {
      nowMs += 1
      for (const wake of wakes.splice(0)) wake()
      // What has its turn now begins, and what it asks for next is asked.
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  /** Asks for more as soon as it has had its turn. */
  const loop = (team: string, machine: string, loops: number) => {
    const run = async () => {
      for (;;) await begin(team, machine, 1)
    }
    for (let each = 0; each < loops; each += 1) void run()
  }
  return { shares, done, begin, pass, loop, sleeping: () => wakes.length }
}

describe('a team', () => {
  test('that works beside one with 128 endless loops begins at once, and leaves the thread idle half of the time', async () => {
    const { shares, done, pass, loop } = openThread()
    expect(shares.turn({ team: 'quiet', machine: 'quiet' }, 1)).toBeNull()
    loop('loud', 'loud', 128)
    await pass(400)
    const before = done['loud'] ?? 0
    await pass(500)
    expect(shares.turn({ team: 'quiet', machine: 'quiet' }, 1)).toBeNull()
    const share = ((done['loud'] ?? 0) - before) / 500
    expect(share).toBeGreaterThan(0.4)
    expect(share).toBeLessThan(0.6)
  })

  test('that has more to do than its share has a quarter of the thread while another one asks', async () => {
    const { shares, done, pass, loop } = openThread()
    expect(shares.turn({ team: 'quiet', machine: 'quiet' }, 1)).toBeNull()
    loop('loud', 'loud', 128)
    await pass(400)
    const before = done['loud'] ?? 0
    for (let each = 0; each < 100; each += 1) {
      expect(shares.turn({ team: 'quiet', machine: 'quiet' }, 1)).toBeNull()
      await pass(5)
    }
    const share = ((done['loud'] ?? 0) - before) / 500
    expect(share).toBeGreaterThan(0.2)
    expect(share).toBeLessThan(0.3)
  })

  test('that works alone has nearly all of the thread', async () => {
    const { done, pass, loop } = openThread()
    loop('loud', 'loud', 128)
    await pass(300)
    const before = done['loud'] ?? 0
    await pass(300)
    expect(((done['loud'] ?? 0) - before) / 300).toBeGreaterThan(0.8)
  })

  test('has as much as another one that waits with it, whatever the number of their loops and units', async () => {
    const { done, pass, loop } = openThread()
    loop('one', 'one', 3)
    for (let unit = 0; unit < 8; unit += 1) loop('other', `other-${unit}`, 20)
    await pass(1500)
    const others = Array.from({ length: 8 }, (_, unit) => done[`other-${unit}`] ?? 0)
    const ofOther = others.reduce((sum, each) => sum + each, 0)
    expect((done['one'] ?? 0) / ofOther).toBeGreaterThan(0.8)
    expect((done['one'] ?? 0) / ofOther).toBeLessThan(1.25)
    // Its units take turns.
    expect(Math.min(...others) / Math.max(...others)).toBeGreaterThan(0.8)
  })

  test('costs one timer while it waits, however many of its connections do', async () => {
    const { shares, pass, loop, sleeping } = openThread()
    expect(shares.turn({ team: 'quiet', machine: 'quiet' }, 1)).toBeNull()
    loop('loud', 'loud', 128)
    await pass(400)
    expect(sleeping()).toBe(1)
  })

  test('loses no turn to clients that went away', async () => {
    const { shares, done, begin, pass, loop } = openThread()
    loop('another', 'another', 1)
    const client = { destroyed: false }
    let begun = 0
    for (let each = 0; each < 10_000; each += 1)
      void shares.turn({ team: 'one', machine: 'one' }, 1, client)?.then(() => (begun += 1))
    client.destroyed = true
    const last = begin('one', 'one', 1)
    await pass(400)
    await last
    expect(begun).toBe(0)
    expect(done['one']).toBe(UNIT_MS)
  })
})
