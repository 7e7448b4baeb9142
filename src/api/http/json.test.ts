// JSON that two parsers could read differently is refused (reliability Z2).

import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { AppError } from '../../contract/errors.ts'
import { parseJson } from './json.ts'

const read = (text: string) => parseJson(Buffer.from(text))

test('parseJson parses every well-formed document as JSON.parse does', () => {
  const key = fc.string({ unit: 'grapheme' }).filter((text) => text !== '__proto__')
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'grapheme' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(key, tie('value'), { maxKeys: 5 }),
    ),
  }))
  fc.assert(
    fc.property(value, fc.constantFrom(0, 2), (sent, indent) => {
      const text = JSON.stringify(sent, null, indent)
      expect(read(text)).toEqual(JSON.parse(text))
    }),
  )
})

const torture: Record<string, string | Buffer> = {
  'text that is not JSON': '{',
  'a bare word': 'nonsense',
  'two values': '{} {}',
  'a trailing comma': '[1,]',
  'a comment': '{} // hello',
  'a byte order mark': '\uFEFF{}',
  'invalid UTF-8': Buffer.from([0x22, 0xff, 0x22]),
  'UTF-16': Buffer.from('{"a":1}', 'utf16le'),
  'a duplicate key': '{"a":1,"a":2}',
  'a duplicate key that is escaped differently': String.raw`{"a":1,"\u0061":2}`,
  'a nested duplicate key': '{"x":[{"a":{"b":1,"c":2,"b":3}}]}',
  'the key __proto__': '{"__proto__":{"admin":true}}',
  'a nested key __proto__': '{"spec":{"env":{"__proto__":"x"}}}',
  'a number out of range': '{"a":1e400}',
  'half of a surrogate pair': String.raw`{"a":"\ud800"}`,
  'half of a surrogate pair in a key': String.raw`{"\udc00":1}`,
  'arrays 10 000 deep': '['.repeat(10_000) + ']'.repeat(10_000),
  'objects 10 000 deep': '{"a":'.repeat(10_000) + '1' + '}'.repeat(10_000),
  'an empty text': '',
}

test.each(Object.entries(torture))('parseJson refuses %s', (_title, text) => {
  expect(() => parseJson(Buffer.from(text))).toThrow(AppError)
})

test.each([
  ['thousands of values', '1,'],
  ['thousands of empty arrays', '[],'],
  ['a million values', '0,'],
])('parseJson refuses %s before it builds any value', (_title, piece) => {
  const parse = vi.spyOn(JSON, 'parse')
  const characters = vi.spyOn(String.prototype, 'indexOf')
  try {
    expect(() => read(`[${piece.repeat(5000)}1]`)).toThrow(/more than 4000 values/)
    expect(parse).not.toHaveBeenCalled()
    expect(characters).not.toHaveBeenCalled()
  } finally {
    vi.restoreAllMocks()
  }
})

test('parseJson does not take text inside a string for a member of an object', () => {
  for (const value of [
    { 'a:b': ':' },
    { a: '{"a":1,"a":2}' },
    { a: '\\', b: '"a":' },
    { 'quote"': '\\":' },
  ]) {
    expect(read(JSON.stringify(value))).toEqual(value)
  }
})

test('parseJson names the path of a refused value', () => {
  expect(() => read(String.raw`{"spec":{"env":{"A":"\ud800"}}}`)).toThrow(/^spec\.env\.A: /)
})

test('parseJson does not let a document change Object.prototype', () => {
  try {
    read('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}')
  } catch {}
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
})

test('parseJson searches a string for each of its quotes once', () => {
  const stepsFor = (quotes: number) => {
    const steps = vi.spyOn(String.prototype, 'indexOf')
    try {
      expect(read(`"${'\\"'.repeat(quotes)}"`)).toBe('"'.repeat(quotes))
      return steps.mock.calls.length
    } finally {
      steps.mockRestore()
    }
  }
  expect(stepsFor(20_000)).toBe(2 * stepsFor(10_000) - 1)
})

// If the number of steps grew with the square of the length, this test would time out.
test.each([
  ['quotes', '\\"'],
  ['backslashes', '\\\\'],
  ['colons', ':'],
])('parseJson parses 4 MB of %s within one string', (_title, piece) => {
  const text = `"${piece.repeat(4_000_000 / piece.length)}"`
  expect(read(text)).toBe(JSON.parse(text))
})
