// Reliability S20: which secret opens which route.

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newEndpointSecret } from '../../contract/endpoint-label.ts'
import { isAuthorized } from './private-link.ts'

const sha256 = (text: string) => createHash('sha256').update(text).digest()

describe('a private route', () => {
  it('accepts its own secret', () => {
    const secret = newEndpointSecret()
    expect(isAuthorized({ secretHash: sha256(secret) }, secret)).toBe(true)
  })

  it('rejects any other text and a missing secret', () => {
    const secret = newEndpointSecret()
    const route = { secretHash: sha256(secret) }
    expect(isAuthorized(route, null)).toBe(false)
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.constant(secret.slice(1)), fc.constant(`${secret}a`)), (other) => {
        expect(isAuthorized(route, other)).toBe(other === secret)
      }),
    )
  })

  it('rejects everything if the stored hash is malformed', () => {
    expect(isAuthorized({ secretHash: Buffer.alloc(0) }, '')).toBe(false)
    expect(isAuthorized({ secretHash: Buffer.from('abc') }, 'abc')).toBe(false)
  })
})

describe('a public route', () => {
  it('accepts requests without a secret and rejects those with one', () => {
    expect(isAuthorized({ secretHash: null }, null)).toBe(true)
    expect(isAuthorized({ secretHash: null }, newEndpointSecret())).toBe(false)
  })
})
