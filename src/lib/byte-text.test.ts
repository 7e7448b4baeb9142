import { describe, expect, test } from 'vitest'
import { bytesOfText, textOfBytes } from './byte-text.ts'

describe('text of bytes', () => {
  test.each([
    ['ASCII', [0x61]],
    ['characters of two, three and four bytes', [...Buffer.from('é✓😀')]],
    ['a lone byte between characters', [0x72, 0xe9, 0x73, 0x6d, ...Buffer.from('é')]],
    ['a character that is cut off', [0xe2, 0x9c]],
    ['a surrogate in UTF-8', [0xed, 0xb2, 0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['every byte', Array.from({ length: 256 }, (_, byte) => byte)],
  ])('returns %s unchanged, also by way of JSON', (_, bytes) => {
    const text = textOfBytes(Buffer.from(bytes))
    expect([...bytesOfText(JSON.parse(JSON.stringify(text)) as string)]).toEqual(bytes)
  })

  test('is well formed exactly if the bytes are UTF-8', () => {
    expect(textOfBytes(Buffer.from('é✓😀'))).toBe('é✓😀')
    expect(textOfBytes(Buffer.from([0x62, 0xff]))).toBe('b\udcff')
  })
})
