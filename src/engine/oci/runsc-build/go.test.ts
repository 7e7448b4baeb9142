import { describe, expect, it } from 'vitest'
import { isOlder } from '../../../lib/versions.ts'
import { proxyOf } from './go.ts'

describe('the machine’s Go', () => {
  for (const [version, isUsed] of [
    ['1.26.3', true],
    ['1.26.8', true],
    ['1.27', true],
    ['2.0', true],
    ['1.26', false],
    ['1.26.2', false],
    ['1.19.8', false],
  ] as const)
    it(`${isUsed ? 'compiles' : 'is left alone'} if it is ${version} and 1.26.3 is wanted`, () =>
      expect(!isOlder(version, '1.26.3')).toBe(isUsed))
})

it('Go itself is fetched from the first proxy that GOPROXY names, or from Go’s own', () => {
  expect(proxyOf({})).toBe('https://proxy.golang.org')
  expect(proxyOf({ GOPROXY: 'off' })).toBe('https://proxy.golang.org')
  expect(proxyOf({ GOPROXY: 'https://go.example/,direct' })).toBe('https://go.example')
  expect(proxyOf({ GOPROXY: 'direct|http://inner.example:8080/go' })).toBe('http://inner.example:8080/go')
})
