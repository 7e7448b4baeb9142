import { expect, test } from 'vitest'
import { startFingerprintOf } from './start-fingerprint.ts'
import type { RunSpec } from './engine.ts'

const run: RunSpec = {
  hostname: 'web',
  entrypoint: ['node'],
  cmd: ['server.js'],
  env: { A: '1', B: '2' },
  files: [{ path: '/srv/config', content: Buffer.from('x') }],
  searchDomain: 'shop.internal',
  egress: null,
}

test('the start fingerprint does not depend on the host name, search domain or order of variables', () => {
  const renamed = { ...run, hostname: 'other', searchDomain: 'copy.internal', env: { B: '2', A: '1' } }
  expect(startFingerprintOf(renamed)).toBe(startFingerprintOf(run))
})

test.each<[string, Partial<RunSpec>]>([
  ['entrypoint', { entrypoint: null }],
  ['command', { cmd: ['server.js', '--debug'] }],
  ['place between entrypoint and command', { entrypoint: ['node', 'server.js'], cmd: [] }],
  ['value of a variable', { env: { A: '1', B: '3' } }],
  ['variable', { env: { A: '1', C: '2' } }],
  ['content of a file', { files: [{ path: '/srv/config', content: Buffer.from('y') }] }],
  ['path of a file', { files: [{ path: '/srv/other', content: Buffer.from('x') }] }],
])('the start fingerprint changes with the %s', (_what, change) => {
  expect(startFingerprintOf({ ...run, ...change })).not.toBe(startFingerprintOf(run))
})
