import { expect, it } from 'vitest'
import { silentLog } from '../../../lib/log.ts'
import { createPool } from './pool.ts'
import type { Slot } from './slots.ts'

/** Makes slots as soon as it is told to. */
function slowMaker() {
  const asked: number[] = []
  const waiting: (() => void)[] = []
  let made = 0
  const make = async (count: number): Promise<Slot[]> => {
    asked.push(count)
    await new Promise<void>((resolve) => waiting.push(resolve))
    return Array.from({ length: count }, () => {
      made += 1
      return { number: made, namespace: `n${made}`, hostInterface: `i${made}`, address: `10.1.0.${made}` }
    })
  }
  const settle = async () => {
    for (; waiting.length > 0; await new Promise(setImmediate)) waiting.shift()?.()
  }
  return { asked, make, settle }
}

it('a burst of machines takes slots that are there, and what it took is made when there is time', async () => {
  const { asked, make, settle } = slowMaker()
  const pool = createPool(make, silentLog)
  pool.refill()
  await settle()
  expect(asked).toEqual([4, 4, 4, 4])
  const taken = await Promise.all(Array.from({ length: 12 }, () => pool.take()))
  expect(new Set(taken.map(({ number }) => number)).size).toBe(12)
  expect(asked).toHaveLength(4)
  pool.refill()
  await settle()
  expect(asked).toHaveLength(7)
  expect(await pool.drain()).toHaveLength(16)
})

it('a machine that finds few slots has more of them made at once, and one that finds none waits for its own', async () => {
  const { asked, make, settle } = slowMaker()
  const pool = createPool(make, silentLog)
  pool.refill()
  await settle()
  for (let index = 0; index < 13; index += 1) await pool.take()
  expect(asked).toHaveLength(5)
  const taken = Array.from({ length: 9 }, () => pool.take())
  await settle()
  expect(new Set((await Promise.all(taken)).map(({ number }) => number)).size).toBe(9)
  pool.refill()
  await settle()
  expect((await pool.drain()).length).toBeGreaterThanOrEqual(13)
})
