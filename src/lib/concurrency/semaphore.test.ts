import { expect, test } from 'vitest'
import { createSemaphore } from './semaphore.ts'

test('no more than the places work at once, and the others follow in order, also after one that fails', async () => {
  const limited = createSemaphore(2)
  const begun: number[] = []
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const works = ends.map(({ promise }, at) =>
    limited(async () => {
      begun.push(at)
      await promise
    }),
  )
  expect(begun).toEqual([0, 1])
  ends[1]?.reject(new Error('failed'))
  await expect(works[1]).rejects.toThrow('failed')
  await expect.poll(() => begun).toEqual([0, 1, 2])
  for (const { resolve } of ends) resolve()
  await Promise.allSettled(works)
  expect(begun).toEqual([0, 1, 2, 3, 4])
})
