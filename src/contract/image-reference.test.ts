// Image references in every spelling (reliability Z4).

import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { imagePattern, InvalidImageReference, parseImageReference } from './image-reference.ts'

const digest = `sha256:${'a'.repeat(64)}`

describe('the canonical form of an image reference', () => {
  test.each([
    ['node', 'docker.io/library/node:latest'],
    ['node:20', 'docker.io/library/node:20'],
    ['bitnami/redis:7.2', 'docker.io/bitnami/redis:7.2'],
    ['docker.io/node:20', 'docker.io/library/node:20'],
    ['docker.io/library/node:20', 'docker.io/library/node:20'],
    ['index.docker.io/library/node', 'docker.io/library/node:latest'],
    ['ghcr.io/owner/name', 'ghcr.io/owner/name:latest'],
    ['quay.io/a/b/c__d/e--f:V1.0_x', 'quay.io/a/b/c__d/e--f:V1.0_x'],
    [`node@${digest}`, `docker.io/library/node@${digest}`],
    [`node:20@${digest}`, `docker.io/library/node@${digest}`],
    ['berth.local/debian:12', 'berth.local/debian:12'],
    ['berth.local/python', 'berth.local/python:latest'],
  ])('%s is written as %s', (text, canonical) => {
    expect(parseImageReference(text).canonical).toBe(canonical)
  })

  test('takes the registry from the reference as it is written, not as it looks', () => {
    expect(parseImageReference('docker.io.evil.com/x').registry).toBe('docker.io.evil.com')
    expect(parseImageReference('ghcr-io/x').registry).toBe('docker.io')
    expect(parseImageReference('node.js').canonical).toBe('docker.io/library/node.js:latest')
  })
})

describe('an image reference that is not allowed (reliability S14)', () => {
  test.each([
    'localhost/x',
    'x.localhost/x',
    '127.0.0.1/x',
    '127.1/x',
    '10.0x1/x',
    '169.254.169.254/latest/meta-data',
    'metadata.google.internal/x',
    'printer.local/x',
    'a/../b',
    'a/./b',
    'a..b/c',
    'library//x',
    'library/x/',
    'ghcr.io/',
    'docker.io./x',
    'ghcr.io/x.',
    '-a.io/x',
    'a-.io/x',
    'a_b.io/x',
    'Node:20',
    'ghcr.io:5000/x',
    'node:',
    'node:.x',
    'node:-x',
    `node:${'x'.repeat(129)}`,
    'node@sha256:abc',
    'node@sha512:abc',
    `node@${digest.toUpperCase()}`,
    'berth.local/a/b',
    'x.berth.local/a',
    'no',
    '',
    ' node',
    'node\n',
    'no\0de',
    'nöde',
    `${'a'.repeat(64)}.io/x`,
  ])('%j is refused with a readable error', (text) => {
    expect(() => parseImageReference(text)).toThrow(InvalidImageReference)
    expect(() => parseImageReference(text)).toThrow(/^This image reference cannot be used: .+\.$/)
  })

  test('is accepted up to 255 characters, and its canonical form can be parsed again', () => {
    const { canonical } = parseImageReference('a'.repeat(255))
    expect(parseImageReference(canonical).canonical).toBe(canonical)
    expect(() => parseImageReference('a'.repeat(300))).toThrow(InvalidImageReference)
  })
})

describe('any text as an image reference (reliability Z5)', () => {
  const part = fc.oneof(fc.stringMatching(/^[a-z0-9._-]{1,12}$/), fc.stringMatching(/^[a-z0-9]{1,12}$/))
  const likely = fc
    .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.option(part), fc.boolean())
    .map(([parts, tag, pinned]) => parts.join('/') + (tag ? `:${tag}` : '') + (pinned ? `@${digest}` : ''))

  test('is either parsed to a form that stays the same when parsed again, or refused', () => {
    let read = 0
    fc.assert(
      fc.property(fc.oneof(likely, fc.string({ unit: 'binary', maxLength: 300 })), (text) => {
        try {
          const reference = parseImageReference(text)
          expect(parseImageReference(reference.canonical)).toEqual(reference)
          expect(reference.canonical).toMatch(imagePattern)
          read += 1
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidImageReference)
        }
      }),
      { numRuns: 2000 },
    )
    expect(read).toBeGreaterThan(100)
  })

  test.each(['a', 'a/', 'a.', '-', ':', '@sha256:', 'a_'])(
    '1 MB of %j is refused before a regular expression runs on it',
    (piece) => {
      const text = piece.repeat(Math.ceil(1_000_000 / piece.length))
      const read = vi.spyOn(RegExp.prototype, 'test')
      const parse = () => parseImageReference(text)
      try {
        expect(parse).toThrow(InvalidImageReference)
        expect(read).not.toHaveBeenCalled()
      } finally {
        read.mockRestore()
      }
    },
  )
})
