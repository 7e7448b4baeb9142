import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonText } from './json-text.ts'

test('jsonText writes an amount of money without an exponent, however small, and keeps its value', () => {
  expect(jsonText({ cents: 7.63e-7, none: 0, whole: 12, text: '1e-9' })).toBe(
    '{"cents":0.000000763,"none":0,"whole":12,"text":"1e-9"}',
  )
  fc.assert(
    fc.property(fc.integer({ min: -1e12, max: 1e12 }), (nanoCents) => {
      const text = jsonText([nanoCents / 1e9])
      expect(text).toMatch(/^\[-?\d+(\.\d+)?\]$/)
      expect(JSON.parse(text)).toEqual([nanoCents / 1e9])
    }),
  )
})

test('jsonText writes every other value as JSON.stringify does', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      fc.pre(!/\de[+-]\d/.test(JSON.stringify(value)))
      expect(jsonText(value)).toBe(JSON.stringify(value))
    }),
  )
})
