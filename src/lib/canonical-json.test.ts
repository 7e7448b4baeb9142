import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from './canonical-json.ts'

/** The same value with the fields of every object the other way round. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, item]) => [name, reversed(item)]),
  )
}

test('the order of fields does not matter, however deep, and nothing else is lost', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(canonicalJson(reversed(value))).toBe(canonicalJson(value))
      expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

test('the order of a list does matter, and so does every value', () => {
  const texts = [{ a: [1, 2] }, { a: [2, 1] }, { a: ['1', 2] }, { a: [1, 2], b: null }, { a: { 0: 1, 1: 2 } }]
  expect(new Set(texts.map(canonicalJson)).size).toBe(texts.length)
})

test('a field that is undefined is a field left out', () => {
  expect(canonicalJson({ a: undefined, b: 1 })).toBe(canonicalJson({ b: 1 }))
})
