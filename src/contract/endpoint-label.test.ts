import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatEndpointLabel,
  hashEndpointSecret,
  labelGrammar,
  newEndpointName,
  newEndpointSecret,
  parseEndpointLabel,
} from './endpoint-label.ts'

/** Unit names, and other text that might be passed for one. */
const unitName = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.stringMatching(/^[a-z][a-z0-9-]{0,31}$/),
  // Names that look like the parts behind them.
  fc.stringMatching(/^[a-z2-7]{1,12}-[a-z2-7]{10}(-[a-z2-7]{26})?$/),
)

describe('an endpoint label', () => {
  it('is parsed into the name and secret it was made of', () => {
    fc.assert(
      fc.property(unitName, fc.boolean(), (unit, isPrivate) => {
        const made = { name: newEndpointName(unit), secret: isPrivate ? newEndpointSecret() : null }
        expect(parseEndpointLabel(formatEndpointLabel(made))).toEqual(made)
      }),
      { numRuns: 2000 },
    )
  })

  it('is a valid DNS label for any name of a unit', () => {
    fc.assert(
      fc.property(unitName, (unit) => {
        const label = formatEndpointLabel({ name: newEndpointName(unit), secret: newEndpointSecret() })
        expect(label).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
        expect(label).not.toContain('--')
      }),
    )
  })

  it('can be parsed in one way only', () => {
    let labels = 0
    const nearly = fc.oneof(
      fc.stringMatching(/^[a-z0-9-]{1,22}-[a-z2-7]{9,11}(-[a-z2-7]{25,27})?$/),
      fc.stringMatching(/^[a-z0-9]{1,20}-[a-z2-7]{10}(-[a-z2-7]{26})?$/),
    )
    fc.assert(
      fc.property(fc.oneof(nearly, fc.string()), (text) => {
        const read = parseEndpointLabel(text)
        if (!read) return
        labels += 1
        expect(formatEndpointLabel(read)).toBe(text)
      }),
      { numRuns: 2000 },
    )
    expect(labels).toBeGreaterThan(100)
  })

  it('begins with the name of the unit, cut to fit', () => {
    expect(newEndpointName('web')).toMatch(/^web-[a-z2-7]{10}$/)
    expect(newEndpointName('My_App.v2')).toMatch(/^my-app-v2-[a-z2-7]{10}$/)
    expect(newEndpointName('a-very-long-name-of-a-unit')).toMatch(/^a-very-long-name-of-[a-z2-7]{10}$/)
    expect(newEndpointName('a'.repeat(32))).toMatch(/^a{20}-[a-z2-7]{10}$/)
    expect(newEndpointName('日本')).toMatch(/^unit-[a-z2-7]{10}$/)
  })

  it.each([
    ['nothing', ''],
    ['a name alone', 'web'],
    ['a random part alone', 'abcdefghij'],
    ['an empty name', '-abcdefghij'],
    ['a random part that is too short', 'web-abcdefghi'],
    ['a random part with digits base32 lacks', 'web-abcdefgh01'],
    ['a secret that is too short', `web-abcdefghij-${'a'.repeat(25)}`],
    ['a secret that is too long', `web-abcdefghij-${'a'.repeat(27)}`],
    ['capitals', 'Web-abcdefghij'],
    ['two hyphens', 'web--abcdefghij'],
    ['a line break at the end', 'web-abcdefghij\n'],
  ])('is refused (%s)', (_what, text) => {
    expect(parseEndpointLabel(text)).toBeNull()
  })
})

describe('an endpoint secret', () => {
  it('has at least 128 bits, and does not repeat', () => {
    expect(labelGrammar.secretLength * 5).toBeGreaterThanOrEqual(128)
    const secrets = Array.from({ length: 1000 }, newEndpointSecret)
    expect(new Set(secrets).size).toBe(1000)
    expect(new Set(secrets.join('')).size).toBe(32)
  })

  it('is stored as its SHA-256', () => {
    expect(hashEndpointSecret('abc').toString('hex')).toMatch(/^ba7816bf8f01cfea/)
  })
})
