// Reliability Z5: only cursors made by the server are accepted.

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeCursor, encodeCursor } from './cursor.ts'
import { newId } from './ids.ts'

it('a cursor decodes to the id it was made from, for its own kind only', () => {
  for (let count = 0; count < 100; count++) {
    const id = newId('unit')
    expect(decodeCursor(encodeCursor(id), 'unit')).toBe(id)
    expect(decodeCursor(encodeCursor(id), 'audit')).toBeNull()
  }
})

it('decodeCursor returns null for any other text', () => {
  fc.assert(fc.property(fc.string({ maxLength: 100 }), (text) => decodeCursor(text, 'unit') === null))
  const cursor = encodeCursor(newId('unit'))
  for (const other of [`${cursor}=`, `${cursor} `, cursor.slice(0, -1), `${cursor}A`]) {
    expect(decodeCursor(other, 'unit')).toBeNull()
  }
})
