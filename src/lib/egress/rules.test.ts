import { describe, expect, test } from 'vitest'
import {
  InvalidEgressEntry,
  canonicalEgressEntry,
  canonicalHostName,
  parseDeniedRange,
  parseEgressEntry,
} from './entry.ts'
import { decideEgress } from './explain.ts'
import { egressPresets } from './presets.ts'
import {
  type EgressRules,
  entryForAddress,
  entryForName,
  isWithin,
  narrowest,
  openEgress,
  parseAllowed,
  portsForName,
} from './rules.ts'

const listed = (...allow: string[]): EgressRules => ({ mode: 'listed', allow, siblings: 'none' })
const none: EgressRules = { mode: 'none', allow: [], siblings: 'none' }

describe('an entry', () => {
  test.each([
    ['API.GitHub.com.', 'api.github.com'],
    ['*.PythonHosted.org', '*.pythonhosted.org'],
    ['github.com:22', 'github.com:22'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['203.0.113.0/24:5432', '203.0.113.0/24:5432'],
    ['203.0.113.7:22', '203.0.113.7/32:22'],
    ['203.0.113.0/24:443', '203.0.113.0/24:443'],
    ['203.0.113.0/24', '203.0.113.0/24'],
    ['203.0.113.7', '203.0.113.7/32'],
    ['preset:npm', 'preset:npm'],
  ])('%s is stored as %s', (text, canonical) => {
    expect(canonicalEgressEntry(text)).toBe(canonical)
  })

  test.each([
    ['*', 'for every public host send the mode "open"'],
    ['https://a.example.com/x', 'must be a name and no URL: write a.example.com'],
    ['http://', 'must be a name and no URL'],
    ['*.*.example.com', 'must be a name'],
    ['localhost', 'must be a name'],
    ['a b.example.com', 'must be a name'],
    ['user@example.com', 'must be a name'],
    ['https://example.com', 'must'],
    ['example.com/path', 'must be an IPv4 range'],
    ['example.com:0', 'a port from 1'],
    ['example.com:70000', 'a port from 1'],
    ['[2001:db8::1]:22', 'must be a name'],
    ['203.0.113.9/24:22', '203.0.113.0/24:22'],
    ['203.0.113.9/24', 'write 203.0.113.0/24'],
    ['10.0.0.1', 'overlaps 10.0.0.0/8'],
    ['10.0.0.0/8:22', 'overlaps 10.0.0.0/8'],
    ['169.254.169.254/32:22', 'overlaps 169.254.0.0/16'],
    ['0.0.0.0/0:22', 'overlaps'],
    ['203.0.113.0/33:22', 'must be an IPv4 range'],
    ['preset:everything', 'the presets are'],
    ['', 'must be a name'],
  ])('%s is refused with a sentence', (text, message) => {
    expect(() => parseEgressEntry(text)).toThrow(InvalidEgressEntry)
    expect(() => parseEgressEntry(text)).toThrow(message)
  })

  test('of every preset can be read, and is written in its canonical form', () => {
    for (const entry of Object.values(egressPresets).flat()) expect(canonicalEgressEntry(entry)).toBe(entry)
  })

  test.each(['127.0.0.1', '0x7f.1', '2130706433', '[::1]', 'a..b', 'a%2eb.c', 'com'])(
    '%s is no name of a public host',
    (text) => {
      expect(canonicalHostName(text)).toBeNull()
    },
  )
})

describe('rules', () => {
  const entries = parseAllowed([
    'api.example.com',
    '*.cdn.example.com',
    'git.example.com:22',
    '198.51.100.0/24:25',
  ])

  test.each([
    ['api.example.com', 443, true],
    ['API.EXAMPLE.COM.', 80, true],
    ['api.example.com', 22, false],
    ['x.api.example.com', 443, false],
    ['a.b.cdn.example.com', 443, true],
    ['cdn.example.com', 443, false],
    ['evilcdn.example.com', 443, false],
    ['git.example.com', 22, true],
    ['git.example.com', 443, false],
  ])('allow %s at %d: %s', (host, port, allowed) => {
    expect(entryForName(entries, host, port) !== null).toBe(allowed)
  })

  test('allow an address by a range and its port', () => {
    expect(entryForAddress(entries, '198.51.100.9', 25)).not.toBeNull()
    expect(entryForAddress(entries, '198.51.100.9', 26)).toBeNull()
    expect(entryForAddress(entries, '198.51.101.0', 25)).toBeNull()
    const whole = parseAllowed(['203.0.113.0/24'])
    expect(entryForAddress(whole, '203.0.113.9', 443)).not.toBeNull()
    expect(entryForAddress(whole, '203.0.113.9', null)).not.toBeNull()
    expect(entryForAddress(entries, '198.51.100.9', null)).toBeNull()
  })

  test('deny addresses whatever else allows them', () => {
    const rules: EgressRules = { ...openEgress, deny: ['203.0.113.0/25'] }
    expect(decideEgress(rules, '203.0.113.127', 443)).toMatchObject({ decision: 'refused' })
    expect(decideEgress(rules, '203.0.113.128', 443)).toMatchObject({ decision: 'allowed' })
    const both: EgressRules = { ...listed('203.0.113.0/24'), deny: ['203.0.113.0/25'] }
    expect(decideEgress(both, '203.0.113.1', 22)).toMatchObject({ decision: 'refused' })
    expect(decideEgress(both, '203.0.113.200', 22)).toMatchObject({ rule: '203.0.113.0/24' })
  })

  test('of two bounds deny what either denies', () => {
    const one: EgressRules = { ...openEgress, deny: ['203.0.113.0/25'] }
    const other: EgressRules = { ...listed('203.0.113.0/24'), deny: ['198.51.100.0/24'] }
    expect(narrowest(one, other)).toEqual({ ...other, deny: ['203.0.113.0/25', '198.51.100.0/24'] })
    expect(narrowest(one, none)).toEqual(none)
  })

  test.each([
    ['0.0.0.0/0', 'send the mode "none"'],
    ['203.0.113.0/24:22', 'must have no port'],
    ['a.example.com', 'must be an IPv4 range'],
  ])('refuse to deny %s', (text, message) => {
    expect(() => parseDeniedRange(text)).toThrow(message)
  })

  test('say at which ports a name may be reached', () => {
    expect(portsForName(entries, 'git.example.com')).toEqual([22])
    expect(portsForName(entries, 'api.example.com')).toEqual([80, 443])
    expect(portsForName(entries, 'other.example.com')).toEqual([])
  })

  test.each<[EgressRules, EgressRules, boolean]>([
    [openEgress, openEgress, true],
    [{ ...openEgress, siblings: 'none' }, listed('a.example.com'), false],
    [none, listed(), true],
    [listed('a.example.com'), none, false],
    [listed('a.example.com'), listed('*.example.com'), true],
    [listed('*.a.example.com'), listed('*.example.com'), true],
    [listed('*.example.com'), listed('a.example.com'), false],
    [listed('example.com'), listed('*.example.com'), false],
    [listed('a.example.com:443'), listed('a.example.com'), true],
    [listed('a.example.com'), listed('a.example.com:443'), false],
    [listed('a.example.com'), listed('a.example.com:443', 'a.example.com:80'), true],
    [listed('github.com:22'), listed('preset:github'), true],
    [listed('198.51.100.128/25:25'), listed('198.51.100.0/24:25'), true],
    [listed('198.51.100.0/24:25'), listed('198.51.100.128/25:25'), false],
    [listed('198.51.100.0/24:443'), listed('198.51.100.0/24'), true],
    [listed('198.51.100.0/24'), listed('198.51.100.0/24:443'), false],
    [openEgress, { ...openEgress, deny: ['198.51.100.0/24'] }, false],
    [{ ...openEgress, deny: ['198.51.0.0/16'] }, { ...openEgress, deny: ['198.51.100.0/24'] }, true],
    [listed(), { ...openEgress, deny: ['198.51.100.0/24'] }, false],
    [none, { ...openEgress, deny: ['198.51.100.0/24'] }, true],
    [{ ...listed('a.example.com'), siblings: 'team' }, listed('a.example.com'), false],
  ])('%j are within %j: %s', (rules, bound, within) => {
    expect(isWithin(rules, bound)).toBe(within)
  })

  test('have as their narrowest what both allow, and it is within both', () => {
    const samples = [
      openEgress,
      none,
      listed('a.example.com', '*.b.example.com:443'),
      listed('*.example.com', '198.51.100.0/24:25'),
      listed('c.b.example.com', '198.51.100.64/26:25', 'preset:github'),
      { ...listed('*.githubusercontent.com'), siblings: 'stack' as const },
    ]
    for (const one of samples) {
      for (const other of samples) {
        const both = narrowest(one, other)
        expect(isWithin(both, one)).toBe(true)
        expect(isWithin(both, other)).toBe(true)
      }
    }
    expect(narrowest(samples[2] ?? none, samples[3] ?? none).allow).toEqual([
      'a.example.com',
      '*.b.example.com:443',
    ])
  })
})
