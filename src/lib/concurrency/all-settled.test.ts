import { describe, expect, it } from 'vitest'
import { allSettled } from './all-settled.ts'

describe('allSettled', () => {
  it('returns all results in order', async () => {
    expect(await allSettled([Promise.resolve(1), 'two', undefined])).toEqual([1, 'two', undefined])
  })

  it('rejects only after all promises have settled', async () => {
    let ended = false
    const slow = new Promise((resolve) => setTimeout(resolve, 20)).then(() => (ended = true))
    await expect(allSettled([Promise.reject(new Error('failed')), slow])).rejects.toThrow('failed')
    expect(ended).toBe(true)
  })
})
