// Every limit of spec 8 at its bound and one beyond it, and the text of a refusal (reliability Z4).

import { describe, expect, it } from 'vitest'
import { createFormOf, createFromSpecSchema } from './create.ts'
import { AppError } from './errors.ts'
import { execSchema } from './exec.ts'
import { decodeFile, fileWriteSchema } from './files.ts'
import { limits } from './limits.ts'
import { parse } from './parse.ts'
import { unitSpecSchema } from './unit-spec.ts'
import { unitListQuerySchema } from './unit.ts'

const valid = { name: 'web', image: 'node:22' }

function refusal(
  body: unknown,
  schema: Parameters<typeof parse>[0] = createFromSpecSchema,
): { path: string; message: string }[] {
  try {
    parse(schema, body)
  } catch (error) {
    if (error instanceof AppError && Array.isArray(error.details)) return error.details
    throw error
  }
  return []
}
const pathsOf = (spec: Record<string, unknown>) =>
  refusal({ spec: { ...valid, ...spec } }).map((issue) => issue.path)
const filled = (count: number, value: unknown) => Array.from({ length: count }, () => value)
const files = (count: number, bytes: number) =>
  Object.fromEntries(filled(count, '').map((_, index) => [`/f${index}`, 'x'.repeat(bytes)]))

describe('a limit', () => {
  const rows: [string, Record<string, unknown>, Record<string, unknown>, string][] = [
    ['name', { name: 'a'.repeat(32) }, { name: 'a'.repeat(33) }, 'spec.name'],
    ['name, shortest', { name: 'a' }, { name: '' }, 'spec.name'],
    ['image, shortest', { image: 'a:1' }, { image: 'ab' }, 'spec.image'],
    ['image', { image: 'a'.repeat(255) }, { image: 'a'.repeat(256) }, 'spec.image'],
    ['cmd items', { cmd: filled(64, 'a') }, { cmd: filled(65, 'a') }, 'spec.cmd'],
    ['cmd item', { cmd: ['a'.repeat(8192)] }, { cmd: ['a'.repeat(8193)] }, 'spec.cmd.0'],
    ['entrypoint items', { entrypoint: filled(64, 'a') }, { entrypoint: filled(65, 'a') }, 'spec.entrypoint'],
    [
      'entrypoint item',
      { entrypoint: ['a'.repeat(8192)] },
      { entrypoint: ['a'.repeat(8193)] },
      'spec.entrypoint.0',
    ],
    ['env value', { env: { A: 'a'.repeat(32768) } }, { env: { A: 'a'.repeat(32769) } }, 'spec.env.A'],
    [
      'secret name',
      { env: { A: { secret: 'a'.repeat(128) } } },
      { env: { A: { secret: 'a'.repeat(129) } } },
      'spec.env.A.secret',
    ],
    [
      'secret name, shortest',
      { env: { A: { secret: 'a' } } },
      { env: { A: { secret: '' } } },
      'spec.env.A.secret',
    ],
    ['ports', { ports: filled(32, 80) }, { ports: filled(33, 80) }, 'spec.ports'],
    ['port', { ports: [65535] }, { ports: [65536] }, 'spec.ports.0'],
    ['port, lowest', { ports: [1] }, { ports: [0] }, 'spec.ports.0'],
    ['expose', { expose: 65535 }, { expose: 65536 }, 'spec.expose'],
    ['expose, lowest', { expose: 1 }, { expose: 0 }, 'spec.expose'],
    ['volume', { volume: { mount: '/d', gb: 500 } }, { volume: { mount: '/d', gb: 501 } }, 'spec.volume.gb'],
    [
      'volume, smallest',
      { volume: { mount: '/d', gb: 1 } },
      { volume: { mount: '/d', gb: 0 } },
      'spec.volume.gb',
    ],
    [
      'mount',
      { volume: { mount: `/${'d'.repeat(254)}` } },
      { volume: { mount: `/${'d'.repeat(255)}` } },
      'spec.volume.mount',
    ],
    ['files', { files: files(64, 1) }, { files: files(65, 1) }, 'spec.files'],
    [
      'files, bytes',
      { files: files(4, 65536) },
      { files: { ...files(4, 65536), '/more': 'x' } },
      'spec.files',
    ],
    [
      'interval',
      { healthcheck: { cmd: ['a'], intervalMs: 500 } },
      { healthcheck: { cmd: ['a'], intervalMs: 499 } },
      'spec.healthcheck.intervalMs',
    ],
    [
      'timeout',
      { healthcheck: { cmd: ['a'], timeoutMs: 300000 } },
      { healthcheck: { cmd: ['a'], timeoutMs: 300001 } },
      'spec.healthcheck.timeoutMs',
    ],
    [
      'timeout, shortest',
      { healthcheck: { cmd: ['a'], timeoutMs: 1000 } },
      { healthcheck: { cmd: ['a'], timeoutMs: 999 } },
      'spec.healthcheck.timeoutMs',
    ],
    [
      'healthcheck items',
      { healthcheck: { cmd: filled(64, 'a') } },
      { healthcheck: { cmd: filled(65, 'a') } },
      'spec.healthcheck.cmd',
    ],
    [
      'healthcheck items, fewest',
      { healthcheck: { cmd: ['a'] } },
      { healthcheck: { cmd: [] } },
      'spec.healthcheck.cmd',
    ],
    ['sleep', { sleep: '99999d' }, { sleep: '100000d' }, 'spec.sleep'],
    ['sleep, shortest', { sleep: '1m' }, { sleep: '0m' }, 'spec.sleep'],
  ]

  it.each(rows)(
    'of %s accepts its bound, and refuses one beyond with its path',
    (_name, within, beyond, path) => {
      expect(pathsOf(within)).toEqual([])
      expect(pathsOf(beyond)).toContain(path)
    },
  )

  it('of waitTimeoutMs, of timeoutMs and of a list accepts its bounds and nothing beyond', () => {
    const wait = (waitTimeoutMs: number) => refusal({ spec: valid, waitTimeoutMs }).length
    expect([wait(-1), wait(0), wait(300_000), wait(300_001)]).toEqual([1, 0, 0, 1])
    const time = (timeoutMs: number) => refusal({ cmd: ['a'], timeoutMs }, execSchema).length
    expect([time(0), time(1), time(3_600_000), time(3_600_001)]).toEqual([1, 0, 0, 1])
    const limit = (text: string) => refusal({ limit: text }, unitListQuerySchema).length
    expect(['0', '1', '500', '501', '-1', '1e2', '', '1.5'].map(limit)).toEqual([1, 0, 0, 1, 1, 1, 1, 1])
  })

  it('of an upload is 1 MB, and base64 that was cut short is refused', () => {
    const write = (bytes: number) => ({ path: '/a', contentBase64: Buffer.alloc(bytes).toString('base64') })
    expect(refusal(write(limits.fileBytes), fileWriteSchema)).toEqual([])
    expect(refusal(write(limits.fileBytes + 1), fileWriteSchema)).toHaveLength(1)
    const cut = Buffer.from('hello').toString('base64').slice(0, -1)
    expect(refusal({ path: '/a', contentBase64: cut }, fileWriteSchema)[0]?.message).toContain('cut short')
    const broken = { path: '/a', contentBase64: 'aGVs\r\nbG8=\n' }
    expect(refusal(broken, fileWriteSchema)).toEqual([])
    expect(decodeFile(broken.contentBase64).toString()).toBe('hello')
  })
})

describe('defaults', () => {
  it('are those of the spec', () => {
    expect(
      parse(createFromSpecSchema, {
        spec: { ...valid, volume: { mount: '/data' }, healthcheck: { cmd: ['up'] } },
      }),
    ).toEqual({
      spec: {
        ...valid,
        env: {},
        ports: [],
        files: {},
        size: 'small',
        nested: false,
        metadata: {},
        volume: { mount: '/data', gb: 2 },
        healthcheck: { cmd: ['up'], intervalMs: 2000, timeoutMs: 60_000 },
      },
      wait: true,
      waitTimeoutMs: 120_000,
    })
  })
})

describe('a refusal', () => {
  it.each([
    [30, 'must be a string such as "30m", not the number 30'],
    [45, 'must be a string such as "45m", not the number 45'],
    [1800, 'must be a string such as "30m" (1800 seconds), not the number 1800'],
    [7200, 'must be a string such as "2h" (7200 seconds), not the number 7200'],
    [86_400, 'must be a string such as "1d" (86400 seconds), not the number 86400'],
    [1000, 'must be a string such as "17m" (1000 seconds), not the number 1000'],
    [1e12, 'must be a string such as "30m", not the number 1000000000000'],
    [-1, 'must be a string such as "30m", not the number -1'],
    [0.5, 'must be a string such as "30m", not the number 0.5'],
  ])('of the number %d as sleep gives the string to send instead', (sleep, message) => {
    expect(refusal({ spec: { ...valid, sleep } })).toEqual([{ path: 'spec.sleep', message }])
  })

  it.each([{}, undefined, { name: 'web', image: 'node:22' }])('of the body %j shows what to send', (body) => {
    expect(refusal(body, createFormOf(body))).toEqual([
      {
        path: 'spec',
        message: expect.stringMatching(/\{"spec": \{"name".*\{"recipe": "postgres"\}.*\/v1\/recipes/),
      },
    ])
  })

  it('of an unknown field names its path and the fields that exist', () => {
    expect(refusal({ spec: { ...valid, command: [] }, extra: 1 })).toEqual([
      { path: 'spec.command', message: expect.stringContaining('cmd, entrypoint') },
      { path: 'extra', message: expect.stringContaining('spec, stack') },
    ])
    expect(pathsOf({ env: { A: { secret: 'a', plain: 'b' } }, volume: { mount: '/d', size: 3 } })).toEqual([
      'spec.env.A.plain',
      'spec.volume.size',
    ])
  })

  it('of a shell line as cmd says what to send', () => {
    expect(refusal({ cmd: 'ls -l' }, execSchema)[0]?.message).toContain('["sh", "-c"')
  })

  it.each(Object.keys(unitSpecSchema.shape))(
    'of a wrong %s names the field in its path and does not repeat it in the message',
    (field) => {
      const wrong = [null, 5.5, '', 'no such', true, {}, [null], { a: null }]
      const issues = wrong.flatMap((value) => refusal({ spec: { ...valid, [field]: value } }))
      expect(issues.length).toBeGreaterThan(0)
      for (const { path, message } of issues)
        expect(message.split(' ')[0], `${path}: ${message}`).not.toBe(path.split('.').at(-1))
    },
  )

  it.each(['env', 'files', 'volume', 'healthcheck', 'ports', 'cmd'])(
    'covers every wrong type of %s',
    (field) => {
      for (const value of [null, 5, 'text', true, [null], { a: null }, { '/a': null }, { A: 5 }]) {
        if (field === 'ports' && Array.isArray(value)) continue
        if ((field === 'env' || field === 'files') && value === undefined) continue
        expect(pathsOf({ [field]: value }).length, JSON.stringify(value)).toBeGreaterThan(0)
      }
    },
  )
})

describe('a spec that no machine could run', () => {
  it.each([
    [{ env: { 'A=B': 'x' } }, 'spec.env.A=B'],
    [{ env: { A: 'x\0y' } }, 'spec.env.A'],
    [{ env: { A: '\ud800' } }, 'spec.env.A'],
    [{ cmd: ['a\0b'] }, 'spec.cmd.0'],
    [{ env: { A: { secret: 's', value: '1' }, B: { secret: 's', value: '2' } } }, 'spec.env'],
    [{ files: { relative: 'x' } }, 'spec.files.relative'],
    [{ files: { '/a/../etc/passwd': 'x' } }, 'spec.files./a/../etc/passwd'],
    [{ files: { '/a//b': 'x' } }, 'spec.files./a//b'],
    [{ files: { '/': 'x' } }, 'spec.files./'],
    [{ files: { '': 'x' } }, 'spec.files'],
    [{ volume: { mount: '' } }, 'spec.volume.mount'],
    [{ ports: [80, 443], expose: 8080 }, 'spec.expose'],
    [{ files: { '/a': 'x', '/a/b': 'y' } }, 'spec.files'],
    [{ files: { '/a': { base64: 'eA=' } } }, 'spec.files./a.base64'],
    [{ files: { '/a': { base64: 'eB==' } } }, 'spec.files./a.base64'],
    [{ volume: { mount: '/' } }, 'spec.volume.mount'],
    [{ volume: { mount: '/proc' } }, 'spec.volume.mount'],
    [{ volume: { mount: '/etc' } }, 'spec.volume.mount'],
    [{ volume: { mount: '/run' } }, 'spec.volume.mount'],
    [{ volume: { mount: '/sys/fs' } }, 'spec.volume.mount'],
    [{ volume: { mount: '/data/../proc' } }, 'spec.volume.mount'],
    [{ volume: { mount: 'data' } }, 'spec.volume.mount'],
  ])('%j is refused at %s', (spec, path) => {
    expect(pathsOf(spec)).toEqual([path])
  })
})

it('a refusal lists at most 50 fields, and cuts long names', () => {
  const many = Object.fromEntries(filled(4000, 1).map((value, index) => [`unknown-${index}`, value]))
  const named = [
    refusal({ spec: valid, ...many }),
    refusal({ spec: { ...valid, env: many } }),
    refusal({ spec: valid, [`k${'k'.repeat(100_000)}`]: 1 }),
  ]
  expect(named.map((issues) => issues.length)).toEqual([50, 50, 1])
  expect(JSON.stringify(named).length).toBeLessThan(50_000)
})

it('a boot file whose path is the directory of another is refused', () => {
  const many = files(50, 1)
  expect(pathsOf({ files: { ...many, '/f1-': 'x', '/f1.d/a': 'x' } })).toEqual([])
  expect(pathsOf({ files: { ...many, '/f1-': 'x', '/f1/deep/a': 'x' } })).toEqual(['spec.files'])
})
