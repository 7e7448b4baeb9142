import { expect, it } from 'vitest'
import { expectedSeconds, inSeededOrder, nextThatFits } from './support/time-budget.ts'

const durations = { long: 500, short: 40 }

it('a file that is expected to last longer than what is left is passed over for the next that fits', () => {
  expect(nextThatFits(['long', 'short'], 2000, durations)).toBe('long')
  expect(nextThatFits(['long', 'short'], 900, durations)).toBe('short')
  expect(nextThatFits(['long', 'short'], 30, durations)).toBeNull()
})

it('a file of unknown duration is expected to take a minute', () => {
  expect(expectedSeconds('unknown', durations)).toBe(60)
})

it('one seed draws one order of files, whichever order they come in, and another seed another', () => {
  const files = Array.from({ length: 30 }, (_, index) => `file ${index}`)
  const first = inSeededOrder(files, 1)
  expect(inSeededOrder(files.toReversed(), 1)).toEqual(first)
  expect(first.toSorted()).toEqual(files.toSorted())
  expect(inSeededOrder(files, 2)).not.toEqual(first)
})

it('each file is the first of the order for some seed', () => {
  const files = ['a', 'b', 'c', 'd', 'e']
  const firsts = Array.from({ length: 60 }, (_, seed) => inSeededOrder(files, seed)[0])
  expect(new Set(firsts).size).toBe(files.length)
})
