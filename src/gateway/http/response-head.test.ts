import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { headersForVisitor } from './response-head.ts'

const HOST = 'web-abcdefghij.berth.localhost'
const publicUnit = { host: HOST, isPrivate: false }
const privateUnit = { host: HOST, isPrivate: true }

describe('a client receives', () => {
  it('the unit’s headers unchanged and in order', () => {
    const headers = ['Content-Type', 'text/html', 'ETag', '"a"', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']
    expect(headersForVisitor(headers, publicUnit).headers).toEqual(headers)
  })

  it('no hop-by-hop headers and no Alt-Svc, which would bypass the gateway', () => {
    const headers = ['Connection', 'Keep-Alive', 'Transfer-Encoding', 'Upgrade', 'Trailer', 'Alt-Svc', 'Te']
      .concat(['Proxy-Authenticate', 'Proxy-Connection'])
      .flatMap((name) => [name, 'x'])
    expect(headersForVisitor(headers, publicUnit).headers).toEqual([])
  })

  it('no Clear-Site-Data for cookies, because other units of the domain have cookies too', () => {
    const clear = (value: string) => headersForVisitor(['Clear-Site-Data', value], publicUnit).headers
    expect(clear('"cookies"')).toEqual([])
    expect(clear('"cache", "Cookies"')).toEqual([])
    expect(clear('"*"')).toEqual([])
    expect(clear('"cache"')).toHaveLength(2)
  })
})

describe('a cookie', () => {
  const passes = (cookie: string, host = HOST) =>
    headersForVisitor(['Set-Cookie', cookie], { host, isPrivate: false }).headers.length > 0

  it.each([
    'a=1',
    'a=domain',
    'a=1; Path=/; Secure; HttpOnly',
    `a=1; Domain=${HOST}`,
    `a=1; domain=.${HOST.toUpperCase()}`,
    'a=1; Domain=',
    'a=1; Domain',
    '__Host-a=1; Secure; Path=/',
  ])('for the unit’s own host is forwarded: %s', (cookie) => {
    expect(passes(cookie)).toBe(true)
    expect(passes(cookie, `${HOST}:7080`)).toBe(true)
    expect(passes(cookie, `${HOST.toUpperCase()}.:7080`)).toBe(true)
  })

  it.each([
    'a=1; Domain=berth.localhost',
    'a=1; Domain=.berth.localhost',
    'a=1; DOMAIN = berth.localhost',
    'a=1;domain=localhost',
    'a=1; Domain=other-abcdefghij.berth.localhost',
    `a=1; Domain=${HOST}; Domain=berth.localhost`,
    `a=1; Domain=berth.localhost; Domain=${HOST}`,
    'a=1;\tDomain\t=\tberth.localhost',
    '; Domain=berth.localhost',
    'a="1; Domain=berth.localhost"',
  ])('for a wider or different domain is dropped: %s', (cookie) => {
    expect(passes(cookie)).toBe(false)
  })

  it('is forwarded only if no attribute names a domain other than the unit’s', () => {
    const attribute = fc.constantFrom(
      'Path=/',
      'Domain=berth.localhost',
      `Domain=${HOST}`,
      ' domain =a',
      'x=Domain=b',
    )
    let passed = 0
    fc.assert(
      fc.property(fc.array(attribute, { maxLength: 12 }), (attributes) => {
        const isWider = attributes.some((text) => text.endsWith('=berth.localhost') || text.endsWith(' =a'))
        if (!isWider) passed += 1
        expect(passes(['a=1', ...attributes].join(';'))).toBe(!isWider)
      }),
    )
    expect(passed).toBeGreaterThan(0)
  })
})

describe('the secret of a private link', () => {
  const policy = (raw: string[], unit: typeof publicUnit) => {
    const { headers } = headersForVisitor(raw, unit)
    return headers.filter((_value, at) => at % 2 === 1)
  }

  it('is kept within its origin by Referrer-Policy, whatever the unit sends', () => {
    expect(policy([], privateUnit)).toEqual(['same-origin'])
    expect(policy(['Referrer-Policy', 'unsafe-url'], privateUnit)).toEqual(['same-origin'])
    expect(policy(['Referrer-Policy', 'no-referrer, unsafe-url'], privateUnit)).toEqual(['same-origin'])
  })

  it('is also protected by a stricter policy of the unit', () => {
    expect(policy(['Referrer-Policy', 'No-Referrer'], privateUnit)).toEqual(['No-Referrer'])
  })

  it('does not change the Referrer-Policy of a public unit', () => {
    expect(policy([], publicUnit)).toEqual([])
    expect(policy(['Referrer-Policy', 'unsafe-url'], publicUnit)).toEqual(['unsafe-url'])
  })
})
