import { describe, expect, test } from 'vitest'
import { Index, type Pattern, patternsOf } from './patterns.ts'
import { Budget, Search } from './search.ts'

const VALUES = Array.from({ length: 32 }, (_, at) => `${at}`.padEnd(8192, '"<&>/=+%\\'))

/** Patterns that count how often one of their characters is asked for. */
function counted(values: string[]) {
  const asked = { times: 0 }
  const patterns = patternsOf(values).map((pattern): Pattern => {
    const at = (index: number) => {
      asked.times += 1
      return pattern.at(index)
    }
    return { ...pattern, at }
  })
  return { asked, patterns }
}

describe('a search', () => {
  test('for 32 values of 8,192 characters begins with two characters of each pattern', () => {
    const { asked, patterns } = counted(VALUES)
    expect(new Index(patterns).longest).toBeGreaterThan(8192)
    expect(asked.times).toBeLessThanOrEqual(2 * patterns.length)
  })

  test.each([
    ['those values', VALUES, VALUES.join(' ')],
    ['those values in JSON', VALUES, JSON.stringify(VALUES)],
    [
      'what all of 64 values begin with',
      Array.from({ length: 64 }, (_, at) => 'a'.repeat(8000) + at),
      'a'.repeat(100_000),
    ],
    ['what one value of backslashes begins with', [`${'\\'.repeat(8000)}b`], '\\'.repeat(100_000)],
  ])(
    'through %s makes few comparisons for each byte, in whatever pieces they come',
    (_what, values, text) => {
      const { asked, patterns } = counted(values)
      const index = new Index(patterns)
      for (const size of [65_536, 1000]) {
        asked.times = 0
        const search = new Search(index, new Budget())
        let held = Buffer.alloc(0)
        for (let at = 0; at < text.length; at += size) {
          const bytes = Buffer.concat([held, Buffer.from(text.slice(at, at + size), 'latin1')])
          held = bytes.subarray(search.find(bytes, false).ready)
        }
        expect(asked.times).toBeLessThan(6 * text.length + 100_000)
      }
    },
  )
})
