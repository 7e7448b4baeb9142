import { describe, expect, it } from 'vitest'
import { brokeredLimits, isBrokeredHost, isBrokeredValue, isPlaceholder } from './secrets.ts'

describe('a brokered secret', () => {
  it.each(['sk-1234', 'two words', 'x', '~!@#$%^&*()', 'a'.repeat(brokeredLimits.valueLength)])(
    'may have the value %j',
    (value) => expect(isBrokeredValue(value)).toBe(true),
  )

  it.each([
    'a\r\nHost: evil.example',
    'a\n',
    'a\0',
    'a\tb',
    'ä',
    '',
    ' a',
    'a ',
    '\u2028',
    'a'.repeat(brokeredLimits.valueLength + 1),
  ])('may not have the value %j', (value) => expect(isBrokeredValue(value)).toBe(false))

  it.each(['short', 'with blank in the middle', 'colon:is-no-part-of-one', 'a'.repeat(257)])(
    'may not have the placeholder %j',
    (text) => expect(isPlaceholder(text)).toBe(false),
  )

  it('may have a random word as its placeholder', () => {
    expect(isPlaceholder('berth_secret_0123456789abcdef0123456789abcdef')).toBe(true)
  })

  it.each(['Api.example.com', '*.example.com', 'example.com.', '192.0.2.1', 'localhost', 'a.example:443'])(
    'may not have the host %j',
    (host) => expect(isBrokeredHost(host)).toBe(false),
  )

  it('may have the exact name of a host', () => expect(isBrokeredHost('api.example.com')).toBe(true))
})
