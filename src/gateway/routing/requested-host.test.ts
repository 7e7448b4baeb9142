// Reliability Z5: a host has one interpretation or none.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readHost } from './requested-host.ts'

const DOMAIN = 'berth.localhost'

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
const port = fc.oneof(
  fc.constant(''),
  fc.constant(':'),
  fc.integer({ min: 1, max: 65535 }).map((number) => `:${number}`),
)
const dot = fc.constantFrom('', '.')

describe('readHost', () => {
  it('returns the label before the domain for any case, port and trailing dot', () => {
    fc.assert(
      fc.property(label, dot, port, fc.infiniteStream(fc.boolean()), (asked, end, suffix, cases) => {
        const host = `${asked}.${DOMAIN}`.replaceAll(/[a-z]/g, (letter) =>
          cases.next().value ? letter.toUpperCase() : letter,
        )
        expect(readHost(`${host}${end}${suffix}`, DOMAIN)).toEqual({ kind: 'label', label: asked })
      }),
    )
  })

  it('never returns a label that the host does not literally contain', () => {
    const characters = fc.constantFrom(...'ab.-:[]@/\\ \t\r\n\0%_é٣K'.split(''), DOMAIN, `.${DOMAIN}`)
    const parts = fc.array(characters, { maxLength: 12 })
    const near = fc.tuple(fc.array(characters, { maxLength: 3 }), fc.constantFrom('', '.', ':', ':1'))
    const hosts = fc.oneof(
      parts.map((all) => all.join('')),
      near.map(([all, end]) => `${all.join('')}.${DOMAIN}${end}`),
    )
    let labels = 0
    fc.assert(
      fc.property(hosts, (host) => {
        const asked = readHost(host, DOMAIN)
        if (asked.kind !== 'label') return
        labels += 1
        expect(asked.label).toMatch(/^[a-z0-9-]{1,63}$/)
        expect(host.toLowerCase()).toMatch(new RegExp(`^${asked.label}\\.berth\\.localhost\\.?(:\\d*)?$`))
      }),
      { numRuns: 5000 },
    )
    expect(labels).toBeGreaterThan(20)
  })

  it.each([
    'berth.localhost',
    'localhost',
    'a.b.berth.localhost',
    'web.example.com',
    'web.berth.localhost.example.com',
    'webberth.localhost',
    '127.0.0.1',
    '127.0.0.1:7080',
    '[::1]:7080',
    '[::ffff:127.0.0.1]',
  ])('classifies a host outside the domain as elsewhere: %s', (host) => {
    expect(readHost(host, DOMAIN)).toEqual({ kind: 'elsewhere' })
  })

  it.each([
    '',
    '.',
    '.berth.localhost',
    'web.berth.localhost..',
    'web..berth.localhost',
    'web.berth.localhost:port',
    'web.berth.localhost:123456',
    'user@web.berth.localhost',
    'web.berth.localhost/path',
    'http://web.berth.localhost',
    'web.berth.localhost, other.berth.localhost',
    'web .berth.localhost',
    'web\0.berth.localhost',
    'web.berth.localhost\n',
    'wéb.berth.localhost',
    'web_1.berth.localhost',
    '::1',
    '[::1',
    `${'a'.repeat(64)}.berth.localhost`,
  ])('rejects a malformed host: %j', (host) => {
    expect(readHost(host, DOMAIN)).toEqual({ kind: 'malformed' })
  })
})
