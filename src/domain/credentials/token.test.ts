import { expect, test } from 'vitest'
import { newToken, tokenMatches, tokenPrefix } from './token.ts'

test('a token matches its own hash and no other', () => {
  const one = newToken('key')
  const other = newToken('key')
  expect(tokenMatches(one.token, one.hash)).toBe(true)
  expect(tokenMatches(one.token, other.hash)).toBe(false)
  expect(tokenMatches(one.token, null)).toBe(false)
})

test('a key shows its mark and carries 256 bits after its prefix', () => {
  const { token, prefix } = newToken('key')
  expect(token).toMatch(/^berth_live_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
  expect(token.startsWith(`${prefix}_`)).toBe(true)
  expect(Buffer.from(token.slice(prefix.length + 1), 'base64url')).toHaveLength(32)
})

test('the prefix is read off a whole token of the kind asked for only', () => {
  const { token, prefix } = newToken('session')
  expect(tokenPrefix('session', token)).toBe(prefix)
  expect(tokenPrefix('key', token)).toBeNull()
  for (const bad of ['', 'berth_session_', token.slice(0, -1), `${token}x`, `${token}\n`, ` ${token}`]) {
    expect(tokenPrefix('session', bad)).toBeNull()
  }
})
