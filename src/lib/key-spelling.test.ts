import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { e2bSpellingOf, keyOfSpelling } from './key-spelling.ts'

it('a key in its second spelling has the form that clients of the other interface check, and is the same key', () => {
  for (let made = 0; made < 50; made += 1) {
    const token = `berth_live_${randomBytes(6).toString('hex')}_${randomBytes(32).toString('base64url')}`
    const spelled = e2bSpellingOf(token)
    expect(spelled).toMatch(/^e2b_[0-9a-f]+$/)
    expect(keyOfSpelling(spelled ?? '')).toBe(token)
  }
})

it('a text that is no key has no second spelling, and stays as it is', () => {
  expect(e2bSpellingOf('berth_live_short')).toBeNull()
  for (const text of ['', 'e2b_', 'e2b_abc', 'berth_live_x', `e2b_${'0'.repeat(77)}`])
    expect(keyOfSpelling(text)).toBe(text)
})
