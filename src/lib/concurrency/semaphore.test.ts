import { expect, test } from 'vitest'
import { createTurns } from './semaphore.ts'

test('no more than the maximum run at once, in the order of asking, failures included', async () => {
  const takeTurn = createTurns(2)
  const started: number[] = []
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const works = gates.map((gate, n) =>
    takeTurn(async () => {
      started.push(n)
      await gate.promise
      return n
    }),
  )
  const outcomes = Promise.allSettled(works)
  const settle = async () => await new Promise((resolve) => setImmediate(resolve))

  await settle()
  expect(started).toEqual([0, 1])
  gates[1]?.reject(new Error('failed'))
  await settle()
  expect(started).toEqual([0, 1, 2])
  for (const gate of gates) gate.resolve()
  expect((await outcomes).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ])
  expect(await takeTurn(async () => 'free again')).toBe('free again')
})
