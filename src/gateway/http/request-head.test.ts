// The head of a request, as the unit gets it (reliability I27).

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type RawHead, headersForUnit, readHead, trailersForOther } from './request-head.ts'

const HOST = 'web-abcdefghij.berth.localhost'
const visitor = { address: '192.0.2.1', proto: 'https' as const }

function asked(rawHeaders: string[], more: Partial<RawHead> = {}): RawHead {
  return { httpVersionMajor: 1, httpVersionMinor: 1, method: 'GET', target: '/', rawHeaders, ...more }
}
const h2 = { httpVersionMajor: 2, httpVersionMinor: 0 }

/** Returns the values that the unit receives for a header name. */
function told(rawHeaders: string[], name: string, more: Partial<RawHead> = {}): string[] {
  const head = readHead(asked(['Host', HOST, ...rawHeaders], more))
  if (!head) throw new Error('refused')
  const headers = headersForUnit(head, visitor)
  return headers.filter((_value, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === name)
}

describe('readHead refuses a request', () => {
  it.each<[string, RawHead]>([
    ['without a host', asked([])],
    ['with an empty host', asked(['Host', ''])],
    ['with two hosts', asked(['Host', HOST, 'host', HOST])],
    ['with another host than :authority', asked([':authority', HOST, 'host', 'other.berth.localhost'], h2)],
    ['with three hosts', asked([':authority', HOST, 'host', HOST, 'host', HOST], h2)],
    [
      'for an absolute URL of another host',
      asked(['Host', HOST], { target: 'http://other.berth.localhost/' }),
    ],
    ['for an absolute URL in HTTP/2', asked([':authority', HOST], { ...h2, target: `http://${HOST}/` })],
    ['for an absolute URL with a fragment only', asked(['Host', HOST], { target: `http://${HOST}#a` })],
    ['for *, unless it is OPTIONS', asked(['Host', HOST], { target: '*' })],
    ['for a path with a line break', asked([':authority', HOST], { ...h2, target: '/ HTTP/1.1\r\nX: y' })],
    ['for a path with a space', asked([':authority', HOST], { ...h2, target: '/a b' })],
    [
      'for a path with characters that are no byte',
      asked([':authority', HOST], { ...h2, target: '/\u0120' }),
    ],
    ['with a malformed method', asked([':authority', HOST], { ...h2, method: 'GET / HTTP/1.1\r\n' })],
    ['with two lengths', asked(['Host', HOST, 'Content-Length', '3', 'Content-Length', '3'])],
    ['with a list of lengths', asked(['Host', HOST, 'Content-Length', '3, 3'])],
    [
      'with a length and chunks',
      asked(['Host', HOST, 'Content-Length', '3', 'Transfer-Encoding', 'chunked']),
    ],
    ['with another coding', asked(['Host', HOST, 'Transfer-Encoding', 'gzip, chunked'])],
    [
      'with two codings',
      asked(['Host', HOST, 'Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked']),
    ],
    [
      'with chunks in HTTP/1.0',
      asked(['Host', HOST, 'Transfer-Encoding', 'chunked'], { httpVersionMinor: 0 }),
    ],
    ['with chunks in HTTP/2', asked([':authority', HOST, 'transfer-encoding', 'chunked'], h2)],
  ])('%s', (_what, request) => {
    expect(readHead(request)).toBeNull()
  })
})

describe('the request target of the unit is', () => {
  it.each<[string, Partial<RawHead>, string]>([
    ['the path, also of an absolute URL', { target: `http://${HOST}/a?b` }, '/a?b'],
    ['the path of an absolute URL in other cases', { target: `HTTPS://${HOST.toUpperCase()}/a` }, '/a'],
    ['a slash if an absolute URL has no path', { target: `http://${HOST}` }, '/'],
    ['a slash before the query of an absolute URL', { target: `http://${HOST}?a=/b` }, '/?a=/b'],
    [
      '* if an absolute URL without a path is asked for its options',
      { target: `http://${HOST}`, method: 'OPTIONS' },
      '*',
    ],
    ['* as it came', { target: '*', method: 'OPTIONS' }, '*'],
    ['a path with bytes above 127 percent-encoded', { target: '/caf\u00c3\u00a9%20' }, '/caf%C3%A9%20'],
  ])('%s', (_what, request, target) => {
    expect(readHead(asked(['Host', HOST], request))?.target).toBe(target)
  })
})

describe('the unit receives', () => {
  it('forwarding headers set by the gateway only, whatever the client sends', () => {
    const lies = ['X-Forwarded-For', 'x_forwarded_for', 'X-FORWARDED-PROTO', 'X-Forwarded-Host', 'Forwarded']
      .concat(['X-Forwarded-Port', 'X-Real-IP', 'x_real-ip', 'X-Forwarded'])
      .flatMap((name) => [name, 'evil'])
    expect(told(lies, 'x-forwarded-for')).toEqual(['192.0.2.1'])
    expect(told(lies, 'x-forwarded-host')).toEqual([HOST])
    expect(told(lies, 'x-forwarded-proto')).toEqual(['https'])
    expect(told(lies, 'forwarded')).toEqual([`for=192.0.2.1;host="${HOST}";proto=https`])
    const head = readHead(asked(['Host', HOST, ...lies]))
    expect(head?.headers).toEqual([])
  })

  it('an IPv6 client address in the form of RFC 7239', () => {
    const head = readHead(asked(['Host', HOST]))
    const headers = head && headersForUnit(head, { address: '2001:db8::1', proto: 'http' })
    expect(headers).toContain(`for="[2001:db8::1]";host="${HOST}";proto=http`)
  })

  it('no hop-by-hop headers', () => {
    const headers = ['Keep-Alive', 'TE', 'Upgrade', 'Proxy', 'Proxy-Connection', 'Proxy-Authorization']
      .concat(['HTTP2-Settings', 'Trailer', 'Expect', 'X-Mine'])
      .flatMap((name) => [name, 'x'])
    const head = readHead(asked(['Connection', 'close, X-Mine', 'Host', HOST, ...headers]))
    expect(head?.headers).toEqual([])
  })

  it('Host and Content-Length even if the client lists them in Connection', () => {
    const head = readHead(asked(['Connection', 'host, content-length', 'Host', HOST, 'Content-Length', '3']))
    expect(head).toMatchObject({ host: HOST, contentLength: '3' })
  })

  it('all other headers unchanged and in order', () => {
    const headers = ['Accept', 'text/html', 'X-A', '1', 'Range', 'bytes=0-9', 'x-a', '2']
    expect(readHead(asked(['Host', HOST, ...headers]))?.headers).toEqual(headers)
  })

  it('a single Cookie header, joined from those of HTTP/2', () => {
    expect(told(['cookie', 'a=1', 'x', 'y', 'cookie', 'b=2'], 'cookie')).toEqual(['a=1; b=2'])
  })

  it('exactly one Host and one of each forwarding header for any input', () => {
    const name = fc.constantFrom('x-forwarded-for', 'X_Forwarded_Host', 'forwarded', 'connection', 'accept')
    const value = fc.constantFrom('host', 'x-forwarded-for', 'accept', 'close', 'a')
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 40 }), (pairs) => {
        for (const ours of [
          'host',
          'x-forwarded-for',
          'x-forwarded-host',
          'x-forwarded-proto',
          'forwarded',
        ]) {
          expect(told(pairs.flat(), ours)).toHaveLength(1)
        }
        expect(told(pairs.flat(), 'connection')).toEqual([])
      }),
    )
  })
})

describe('trailers', () => {
  it('are forwarded except for names that are unsafe outside the header section', () => {
    const raw = [
      'Checksum',
      'a',
      'checksum',
      'b',
      'Host',
      'x',
      'Content-Length',
      '1',
      'X-Forwarded-For',
      '1',
    ].concat(['Cookie', 'a=b', 'Transfer-Encoding', 'chunked', 'Authorization', 'x', '__proto__', 'x'])
    expect(trailersForOther(raw)).toEqual({ checksum: 'a, b' })
  })
})
