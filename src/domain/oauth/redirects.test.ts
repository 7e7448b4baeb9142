// Reliability S8 and S9: which redirect URIs may be registered, and which match a registered one.

import { describe, expect, it } from 'vitest'
import { readRedirect, redirectMatches, withAnswer } from './redirects.ts'

describe('readRedirect accepts', () => {
  it.each([
    ['https://claude.ai/api/mcp/auth_callback', 'web', 'claude.ai'],
    ['https://[2001:db8::1]:8443/cb?x=1', 'web', '[2001:db8::1]'],
    ['http://localhost:7777/oauth/callback', 'loopback', 'localhost'],
    ['http://127.0.0.1/', 'loopback', '127.0.0.1'],
    ['http://[::1]:9/cb', 'loopback', '[::1]'],
    ['cursor://anysphere.cursor-mcp/oauth/callback', 'app', 'cursor'],
    ['vscode://ms.vscode/callback', 'app', 'vscode'],
    ['com.example.app:/oauth', 'app', 'com.example.app'],
  ] as const)('%s', (uri, kind, name) => {
    expect(readRedirect(uri)).toEqual({ kind, name })
  })
})

describe('readRedirect refuses', () => {
  it.each([
    '',
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:https://app.example/1',
    'about:blank',
    'ftp://app.example/',
    'mailto:a@b.example',
    'intent://x#Intent;end',
    'http://evil.example/cb',
    'http://localhost.evil.example/cb',
    'http://127.0.0.1.nip.io/cb',
    'http://127.1/cb',
    'http://0.0.0.0/cb',
    'http://2130706433/cb',
    'http://LOCALHOST/cb',
    'http://user@127.0.0.1/cb',
    'http://localhost:80:80/cb',
    'https://user:pass@app.example/cb',
    'https://app.example/cb#fragment',
    'https://app.example/cb#',
    'https://*.app.example/cb',
    'https://app.example/*',
    'https:/app.example/cb',
    'https:\\\\app.example\\cb',
    'https://app.example\\@evil.example/',
    'https://app.example/\ncb',
    'https://app.example/c b',
    'https://äpp.example/cb',
    '//app.example/cb',
    '/callback',
    'app:/cb',
    `https://app.example/${'x'.repeat(512)}`,
  ])('%j', (uri) => {
    expect(readRedirect(uri)).toBeNull()
  })
})

it('a loopback redirect matches with any port, and with no other difference', () => {
  const registered = 'http://localhost:7777/oauth/callback?a=1'
  for (const port of ['', ':1', ':65535']) {
    expect(redirectMatches(registered, `http://localhost${port}/oauth/callback?a=1`)).toBe(true)
  }
  for (const other of [
    'http://127.0.0.1:7777/oauth/callback?a=1',
    'http://localhost:7777/oauth/callback',
    'http://localhost:7777/oauth/callback?a=1&b=2',
    'http://localhost:7777/oauth/callback/?a=1',
    'http://localhost:7777/x/../oauth/callback?a=1',
    'https://localhost:7777/oauth/callback?a=1',
    'http://localhost:7777/OAuth/callback?a=1',
    'http://localhost:7777/oauth/callback?a=1#',
    'http://a@localhost:7777/oauth/callback?a=1',
  ]) {
    expect([other, redirectMatches(registered, other)]).toEqual([other, false])
  }
})

it('a redirect to a site or an app matches only when it is identical', () => {
  const registered = 'https://app.example/cb'
  for (const other of [
    'https://app.example/cb/',
    'https://app.example/cb?',
    'https://app.example/cb?x=1',
    'https://app.example:443/cb',
    'https://app.example:8443/cb',
    'https://APP.example/cb',
    'https://app.example/CB',
    'https://app.example/x/../cb',
    'https://app.example/%63b',
    'https://app.example.evil.example/cb',
    'https://evil.example/?https://app.example/cb',
    'http://app.example/cb',
  ]) {
    expect([other, redirectMatches(registered, other)]).toEqual([other, false])
  }
  expect(redirectMatches('cursor://a/b', 'cursor://a/c')).toBe(false)
})

it('withAnswer adds the answer to the query that the redirect has', () => {
  expect(withAnswer('https://a.example/cb?x=1', { code: 'a b', state: null })).toBe(
    'https://a.example/cb?x=1&code=a+b',
  )
  expect(withAnswer('cursor://a/b', { code: 'c' })).toBe('cursor://a/b?code=c')
})
