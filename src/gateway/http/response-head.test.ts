import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { headersForVisitor } from './response-head.ts'

const HOST = 'web-abcdefghij.berth.localhost'
const publicUnit = { host: HOST, isPrivate: false }
const privateUnit = { host: HOST, isPrivate: true }

describe('a visitor gets', () => {
  it('the unit’s headers as they are, in that order', () => {
    const headers = ['Content-Type', 'text/html', 'ETag', '"a"', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']
    expect(headersForVisitor(headers, publicUnit).headers).toEqual(headers)
  })

  it('nothing that was meant for the gateway, or leads past it', () => {
    const headers = ['Connection', 'Keep-Alive', 'Transfer-Encoding', 'Upgrade', 'Trailer', 'Alt-Svc', 'Te']
      .concat(['Proxy-Authenticate', 'Proxy-Connection'])
      .flatMap((name) => [name, 'x'])
    expect(headersForVisitor(headers, publicUnit).headers).toEqual([])
  })

  it('no order to clear cookies, which other units have too', () => {
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
  ])('of the unit’s own host passes: %s', (cookie) => {
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
  ])('of a wider domain is dropped: %s', (cookie) => {
    expect(passes(cookie)).toBe(false)
  })

  it('passes with no domain other than the unit’s, whatever else it says', () => {
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

  it('stays within its origin, whatever the unit allows', () => {
    expect(policy([], privateUnit)).toEqual(['same-origin'])
    expect(policy(['Referrer-Policy', 'unsafe-url'], privateUnit)).toEqual(['same-origin'])
    expect(policy(['Referrer-Policy', 'no-referrer, unsafe-url'], privateUnit)).toEqual(['same-origin'])
  })

  it('may be kept even closer by the unit', () => {
    expect(policy(['Referrer-Policy', 'No-Referrer'], privateUnit)).toEqual(['No-Referrer'])
  })

  it('is no concern of a public unit', () => {
    expect(policy([], publicUnit)).toEqual([])
    expect(policy(['Referrer-Policy', 'unsafe-url'], publicUnit)).toEqual(['unsafe-url'])
  })
})
