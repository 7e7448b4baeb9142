import { expect, it } from 'vitest'
import { partOf } from './support/part-of.ts'

const cases = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

it('a part has the requested number of different cases, in the order of the list', () => {
  for (let seed = 0; seed < 20; seed += 1) {
    const part = partOf(cases, 3, seed)
    expect(new Set(part).size).toBe(3)
    expect(part).toEqual(part.toSorted())
  }
})

it('every case is in the part of some seed', () => {
  const met = new Set(cases.flatMap((_, seed) => partOf(cases, 2, seed)))
  expect([...met].toSorted()).toEqual(cases)
})

it('the same seed draws the same part', () => {
  expect(partOf(cases, 3, 5)).toEqual(partOf(cases, 3, 5))
})

it('a short list is run as a whole', () => {
  expect(partOf(cases, 7)).toEqual(cases)
  expect(partOf(cases, 9)).toEqual(cases)
})
