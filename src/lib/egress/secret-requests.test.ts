import { describe, expect, it } from 'vitest'
import { isSecretPath, mayBeUsedFor } from './secret-requests.ts'

const rule = { methods: ['GET', 'POST'], paths: ['/v1/messages', '/v1/sessions/s1/*'] }
const may = (method: string, target: string, headers: string[] = []) =>
  mayBeUsedFor(rule, { method, target, headers })

describe('a secret with methods and paths', () => {
  it.each([
    ['GET', '/v1/messages'],
    ['POST', '/v1/messages?beta=true'],
    ['POST', '/v1/sessions/s1/events'],
    ['GET', '/v1/sessions/s1/files/a%20b'],
  ])('is for %s %s', (method, target) => {
    expect(may(method, target)).toBe(true)
  })

  it.each([
    ['DELETE', '/v1/messages'],
    ['get', '/v1/messages'],
    ['GET', '/v1/messages/'],
    ['GET', '/v1/sessions/s2/events'],
    ['GET', '/v1/sessions/s1'],
    ['GET', '/v1/sessions/s1/'],
    ['GET', '/v1/sessions/s1/../s2/events'],
    ['GET', '/v1/sessions/s1/..;/s2/events'],
    ['GET', '/v1/sessions/s1/..'],
    ['GET', '/v1/sessions/s1/%2e%2e/s2'],
    ['GET', '/v1/sessions/s1/..%2Fs2'],
    ['GET', '/v1/sessions/s1/%252e%252e/s2'],
    ['GET', '/v1/sessions/s1\\..\\s2'],
    ['GET', '/v1/sessions/s1//events'],
    ['GET', '/v1/messages#/'],
    ['GET', '/v1/sessions/s1/%zz'],
    ['GET', '*'],
  ])('is not for %s %s', (method, target) => {
    expect(may(method, target)).toBe(false)
  })

  it('is not for a request that asks for another method or path by a header', () => {
    expect(may('GET', '/v1/messages', ['accept', 'x-http-method-override'])).toBe(false)
    expect(may('GET', '/v1/messages', ['x-original-url'])).toBe(false)
  })
})

it('a secret without methods and paths is for every request', () => {
  expect(mayBeUsedFor({}, { method: 'DELETE', target: '/a/../b', headers: [] })).toBe(true)
})

it('a path of a rule is exact or ends with an asterisk after a slash', () => {
  expect(['/', '/*', '/a', '/a/*', '/a/b%20c'].filter((path) => !isSecretPath(path))).toEqual([])
  const wrong = ['', 'a', '/a*', '/*/a', '/a/../b', '/a//b', '/a?b', '/a b', '/%2e', '*']
  expect(wrong.filter((path) => isSecretPath(path))).toEqual([])
})
