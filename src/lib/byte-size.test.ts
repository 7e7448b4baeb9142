import { expect, it } from 'vitest'
import { byteSize } from './byte-size.ts'

const MIB = 1024 ** 2

it.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1000 B'],
  [1023, '1023 B'],
  [1024, '1.0 KiB'],
  [10_189, '10 KiB'],
  [MIB - 1, '1.0 MiB'],
  [512 * MIB, '512 MiB'],
  [1.5 * 1024 * MIB, '1.5 GiB'],
  [5 * 1024 * MIB, '5.0 GiB'],
  [2048 * 1024 ** 4, '2048 TiB'],
])('%s bytes are shown as %s', (count, text) => {
  expect(byteSize(count)).toBe(text)
})
