import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from './canonical-json.ts'

/** Reverses the order of fields in every object. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, item]) => [name, reversed(item)]),
  )
}

test('canonicalJson does not depend on the order of fields at any depth and loses no value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(canonicalJson(reversed(value))).toBe(canonicalJson(value))
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('canonicalJson depends on the order of lists and on every value', () => {
  const texts = [{ a: [1, 2] }, { a: [2, 1] }, { a: ['1', 2] }, { a: [1, 2], b: null }, { a: { 0: 1, 1: 2 } }]
  expect(new Set(texts.map(canonicalJson)).size).toBe(texts.length)
})

test('canonicalJson omits undefined fields', () => {
  expect(canonicalJson({ a: undefined, b: 1 })).toBe(canonicalJson({ b: 1 }))
})
