// Image documents are untrusted. Whatever they contain, parsing ends quickly with a result or with ManifestRefused
// (reliability Z5).

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { imageLimits } from './image-limits.ts'
import { readImageConfig } from './image-config.ts'
import { ManifestRefused, pickFromIndex, readManifest } from './manifest.ts'

const digest = `sha256:${'a'.repeat(64)}`
const field = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom(
    digest,
    'sha256:x',
    -1,
    1e300,
    'application/vnd.oci.image.layer.v1.tar+gzip',
    '/proc/self',
    '0:0',
  ),
)
const anyPart = fc.record(
  { mediaType: field, digest: field, size: field, urls: field, platform: field },
  { requiredKeys: [] },
)
const soundPart = fc.record({
  mediaType: fc.constant('application/vnd.oci.image.layer.v1.tar+gzip'),
  digest: fc.constant(digest),
  size: fc.nat(1000),
  platform: fc.constant({ os: 'linux', architecture: 'amd64' }),
})
/** Mostly valid: one invalid part makes the parser refuse the whole document. */
const part = fc.oneof({ weight: 1, arbitrary: anyPart }, { weight: 9, arbitrary: soundPart })
const parts = fc.array(part, { maxLength: 6 })
const document = fc.oneof(
  fc.json(),
  fc.string(),
  fc
    .record(
      {
        manifests: parts,
        config: fc.oneof(part, field),
        layers: parts,
        schemaVersion: field,
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
  fc.record({ manifests: parts }).map((value) => JSON.stringify(value)),
  fc.record({ config: part, layers: parts }).map((value) => JSON.stringify(value)),
  fc
    .record(
      {
        Env: field,
        Cmd: fc.array(field, { maxLength: 4 }),
        Entrypoint: field,
        WorkingDir: field,
        User: field,
        ExposedPorts: fc.dictionary(fc.string(), field, { maxKeys: 4 }),
      },
      { requiredKeys: [] },
    )
    .map((config) => JSON.stringify({ config })),
)

describe('the parser of untrusted image documents', () => {
  const readers: [string, (text: string) => unknown][] = [
    ['index', (text) => pickFromIndex(text, 'amd64')],
    ['manifest', (text) => readManifest(text, imageLimits)],
    ['configuration', readImageConfig],
  ]
  test.each(readers)('accepts any document or throws ManifestRefused when it reads it as %s', (_, read) => {
    let taken = 0
    fc.assert(
      fc.property(document, (text) => {
        try {
          if (read(text) !== null) taken += 1
        } catch (error) {
          expect(error).toBeInstanceOf(ManifestRefused)
        }
      }),
      { numRuns: 2000 },
    )
    expect(taken).toBeGreaterThan(50)
  })

  // Quadratic work on a megabyte would exceed the timeout of the test.
  test.each(readers)(
    'handles 1 MB of nesting, keys or digits without hanging when it reads it as %s',
    (_, read) => {
      const keys = JSON.stringify(
        Object.fromEntries(Array.from({ length: 60_000 }, (__, n) => [`${n}/tcp`, {}])),
      )
      const texts = ['['.repeat(1_000_000), `{"config":{"ExposedPorts":${keys}}}`, '9'.repeat(1_000_000)]
      for (const text of texts) {
        try {
          read(text)
        } catch (error) {
          expect(error).toBeInstanceOf(ManifestRefused)
        }
      }
    },
  )
})

test('readImageConfig keeps only values that a process can be started with', () => {
  const config = {
    Env: ['A=1', '=C:', 'novalue'],
    WorkingDir: 'srv',
    User: '1000:1000',
    ExposedPorts: { '80/tcp': {}, '80': {}, '0/tcp': {}, '65536/tcp': {}, '443/sctp': {}, x: {} },
  }
  expect(readImageConfig(JSON.stringify({ config, history: [{}], os: 'linux' }))).toEqual({
    env: ['A=1'],
    entrypoint: [],
    cmd: [],
    workingDir: '/srv',
    user: '1000:1000',
    exposedPorts: [80],
  })
  expect(readImageConfig('{}').workingDir).toBe('/')
})
