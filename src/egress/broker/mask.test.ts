import { once } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maskOf } from './mask.ts'

const VALUE = 'sk-0123456789abcdef'
const LONGER = 'ghp_0123456789abcdefghijklmnop'
const stars = (value: string) => '*'.repeat(value.length)

async function masked(pieces: string[], ...values: string[]): Promise<string[]> {
  const stream = maskOf(values)?.stream()
  if (!stream) return pieces
  const read: string[] = []
  stream.on('data', (chunk: Buffer) => read.push(chunk.toString()))
  for (const piece of pieces) stream.write(Buffer.from(piece))
  stream.end()
  await once(stream, 'end')
  return read
}

describe('an answer', () => {
  test('has asterisks in place of a value, however it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(80), { maxLength: 6 }), async (cuts) => {
        const text = `{"key":"${VALUE}","also":"${LONGER}","${VALUE.slice(0, 9)}":"${VALUE}${VALUE}"}`
        const at = [0, ...cuts.toSorted((one, other) => one - other), text.length]
        const pieces = at.slice(1).map((end, index) => text.slice(at[index], end))
        const expected = text.replaceAll(LONGER, stars(LONGER)).replaceAll(VALUE, stars(VALUE))
        expect((await masked(pieces, VALUE, LONGER)).join('')).toBe(expected)
      }),
    )
  })

  test('that has no value passes as it is, and no piece waits for the next one', async () => {
    const pieces = ['data: one\n\n', 'data: sk-\n\n', 'data: 0123456789abcdef\n\n']
    expect(await masked(pieces, VALUE)).toEqual(pieces)
  })

  test('whose end could be the beginning of a value is whole', async () => {
    expect((await masked(['a sk-01'], VALUE)).join('')).toBe('a sk-01')
  })

  test('has asterisks in its headers too', () => {
    expect(maskOf([VALUE])?.text(`Bearer ${VALUE}`)).toBe(`Bearer ${stars(VALUE)}`)
  })

  test('is not looked at for a value that may be an ordinary word', () => {
    expect(maskOf(['password'])).toBeNull()
  })
})
