import { expect, test } from 'vitest'
import { batched } from './batch.ts'

test('batched calls made in one turn share one run, and each gets its own result', async () => {
  const runs: number[][] = []
  const double = batched(async (items: number[]) => {
    runs.push(items)
    return items.map((item) => item * 2)
  })
  expect(await Promise.all([double(1), double(2), double(3)])).toEqual([2, 4, 6])
  expect(runs).toEqual([[1, 2, 3]])
})

test('batched calls made during a run share the next run', async () => {
  const runs: string[][] = []
  const gate = Promise.withResolvers<void>()
  const started = Promise.withResolvers<void>()
  const send = batched(async (items: string[]) => {
    runs.push(items)
    started.resolve()
    if (runs.length === 1) await gate.promise
    return items
  })
  const first = send('a')
  await started.promise
  const rest = Promise.all([send('b'), send('c')])
  gate.resolve()
  expect(await first).toBe('a')
  expect(await rest).toEqual(['b', 'c'])
  expect(runs).toEqual([['a'], ['b', 'c']])
})

test('a failed batch rejects its own calls only', async () => {
  let failing = true
  const send = batched(async (items: number[]) => {
    if (failing) throw new Error('away')
    return items
  })
  await expect(send(1)).rejects.toThrow('away')
  failing = false
  expect(await send(2)).toBe(2)
})

test('a batch never exceeds its maximum size', async () => {
  const sizes: number[] = []
  const send = batched(async (items: number[]) => {
    sizes.push(items.length)
    return items
  }, 2)
  await Promise.all([1, 2, 3, 4, 5].map(send))
  expect(sizes).toEqual([2, 2, 1])
})
