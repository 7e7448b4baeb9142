// Spec 8: every limit at one less, exactly, and one more.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unitId: string

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unitId = (await makeUnit(service, team)).id
})
afterAll(async () => await service.close())

type Sent = { spec?: object; body?: object }

let count = 0

async function create({ spec = {}, body = {} }: Sent) {
  const sent = { spec: { name: `limit-${count++}`, image: 'node:22', ...spec }, ...body }
  return await service.call('POST', '/v1/units', { key: team.key, body: sent })
}

const times = <T>(length: number, item: (index: number) => T) =>
  Array.from({ length }, (_, index) => item(index))
const record = <T>(length: number, entry: (index: number) => [string, T]) =>
  Object.fromEntries(times(length, entry))

/** Makes a request for a number, with the numbers that pass and those that fail. */
type Limit = { path: string; make: (n: number) => Sent; passes: number[]; fails: number[] }

// Written in full, because the default registry and tag count towards the length of a name too.
const fullImage = (n: number) => `docker.io/library/${'a'.repeat(Math.max(1, n - 21))}:22`
const image = (n: number) => ({ spec: { image: n < 22 ? 'a'.repeat(n) : fullImage(n) } })
const argv = (field: 'cmd' | 'entrypoint') => ({
  items: (n: number) => ({ spec: { [field]: times(n, () => 'x') } }),
  length: (n: number) => ({ spec: { [field]: ['x', 'y'.repeat(n)] } }),
})
const healthcheck = (fields: object) => ({ spec: { healthcheck: { cmd: ['true'], ...fields } } })
const volume = (fields: object) => ({ spec: { volume: { mount: '/data', ...fields } } })

const table: Record<string, Limit> = {
  'unit name': {
    path: 'spec.name',
    make: (n) => ({ spec: { name: 'n'.repeat(n) } }),
    passes: [1, 31, 32],
    fails: [0, 33],
  },
  'stack name': {
    path: 'stack',
    make: (n) => ({ body: { stack: 's'.repeat(n) } }),
    passes: [1, 31, 32],
    fails: [0, 33],
  },
  image: { path: 'spec.image', make: image, passes: [3, 4, 254, 255], fails: [2, 256] },
  'cmd items': { path: 'spec.cmd', make: argv('cmd').items, passes: [63, 64], fails: [65] },
  'cmd item length': { path: 'spec.cmd.1', make: argv('cmd').length, passes: [8191, 8192], fails: [8193] },
  'entrypoint items': {
    path: 'spec.entrypoint',
    make: argv('entrypoint').items,
    passes: [63, 64],
    fails: [65],
  },
  'entrypoint item length': {
    path: 'spec.entrypoint.1',
    make: argv('entrypoint').length,
    passes: [8191, 8192],
    fails: [8193],
  },
  'plain env value': {
    path: 'spec.env.A',
    make: (n) => ({ spec: { env: { A: 'v'.repeat(n) } } }),
    passes: [0, 32767, 32768],
    fails: [32769],
  },
  'secret name': {
    path: 'spec.env.A.secret',
    make: (n) => ({ spec: { env: { A: { secret: 'S'.repeat(n) } } } }),
    passes: [1, 127, 128],
    fails: [0, 129],
  },
  ports: {
    path: 'spec.ports',
    make: (n) => ({ spec: { ports: times(n, (index) => 1000 + index) } }),
    passes: [0, 31, 32],
    fails: [33],
  },
  port: {
    path: 'spec.ports.0',
    make: (port) => ({ spec: { ports: [port] } }),
    passes: [1, 2, 65534, 65535],
    fails: [-1, 0, 65536, 1.5],
  },
  'volume size': {
    path: 'spec.volume.gb',
    make: (gb) => volume({ gb }),
    passes: [1, 2, 499, 500],
    fails: [0, 501, 1.5],
  },
  'volume mount': {
    path: 'spec.volume.mount',
    make: (n) => volume({ mount: `/${'m'.repeat(n - 1)}` }),
    passes: [254, 255],
    fails: [256],
  },
  'boot files': {
    path: 'spec.files',
    make: (n) => ({ spec: { files: record(n, (index) => [`/f${index}`, 'x']) } }),
    passes: [0, 63, 64],
    fails: [65],
  },
  'boot files in all': {
    path: 'spec.files',
    make: (n) => ({ spec: { files: { '/a': 'x'.repeat(1000), '/b': { base64: base64(n - 1000) } } } }),
    passes: [256 * 1024 - 1, 256 * 1024],
    fails: [256 * 1024 + 1],
  },
  'healthcheck items': {
    path: 'spec.healthcheck.cmd',
    make: (n) => healthcheck({ cmd: times(n, () => 'true') }),
    passes: [1, 63, 64],
    fails: [0, 65],
  },
  'healthcheck intervalMs': {
    path: 'spec.healthcheck.intervalMs',
    make: (intervalMs) => healthcheck({ intervalMs }),
    passes: [500, 501],
    fails: [499],
  },
  'healthcheck timeoutMs': {
    path: 'spec.healthcheck.timeoutMs',
    make: (timeoutMs) => healthcheck({ timeoutMs }),
    passes: [1000, 1001, 299_999, 300_000],
    fails: [999, 300_001],
  },
  waitTimeoutMs: {
    path: 'waitTimeoutMs',
    make: (waitTimeoutMs) => ({ body: { waitTimeoutMs } }),
    passes: [299_999, 300_000],
    fails: [-1, 300_001],
  },
}

function base64(bytes: number): string {
  return Buffer.alloc(bytes, 'x').toString('base64')
}

describe('a create (spec 8)', () => {
  const rows = Object.entries(table).flatMap(([title, { path, make, passes, fails }]) => [
    ...passes.map((n) => ({ title, n, path, make, status: 201 })),
    ...fails.map((n) => ({ title, n, path, make, status: 400 })),
  ])
  test.each(rows)('with $title of $n returns $status', async ({ n, path, make, status }) => {
    const answer = await create(make(n))
    expect(answer.status, JSON.stringify(answer.body).slice(0, 500)).toBe(status)
    if (status === 400) {
      expect(answer.body).toMatchObject({
        error: {
          code: 'validation',
          details: expect.arrayContaining([{ path, message: expect.any(String) }]),
        },
      })
    }
  })
})

describe('the patterns of a spec (spec 2.1)', () => {
  test.each(['-a', 'a-', 'a--b', 'A', 'a_b', 'a.b', 'ä', 'a\n', ' a'])('refuse the name %j', async (name) => {
    expect((await create({ spec: { name } })).status).toBe(400)
  })
  test.each(['a1', '1a', 'a-b-c'])('accept the name %j', async (name) => {
    expect((await create({ spec: { name } })).status).toBe(201)
  })
  test.each(['never', '1m', '99999d', '30m', '12h'])('accept the sleep %j', async (sleep) => {
    expect((await create({ spec: { sleep } })).status).toBe(201)
  })
  test.each([
    '0m',
    '01m',
    '100000m',
    '1s',
    '1',
    'm',
    '-1m',
    '1.5h',
    'Never',
    '',
    '1m ',
    '1m\n',
    30,
    null,
    { m: 1 },
  ])('refuse the sleep %j', async (sleep) => {
    const answer = await create({ spec: { sleep } })
    expect(answer).toMatchObject({ status: 400, body: { error: { details: [{ path: 'spec.sleep' }] } } })
  })
  test.each(['Node', '-a:b', 'node:', 'node@sha256:abc', 'a b', '../a', 'http://x/y', 'node:22\n'])(
    'refuse the image %j',
    async (image) => {
      expect((await create({ spec: { image } })).status).toBe(400)
    },
  )
  // A pattern whose steps grow with the square of a text needs half an hour for these, so this test would time out.
  test('refuse a megabyte of text in time', async () => {
    const long = 1_000_000
    for (const spec of [
      { name: 'a-'.repeat(long / 2) },
      { image: 'a/'.repeat(long / 2) },
      { sleep: '1'.repeat(long) },
      { env: { A: { secret: 'S'.repeat(long) } } },
      { files: { [`/${'a/'.repeat(long / 2)}`]: '' } },
    ]) {
      expect((await create({ spec })).status).toBe(400)
    }
  })
})

describe('exec', () => {
  const exec = (body: object) => service.call('POST', `/v1/units/${unitId}/exec`, { key: team.key, body })

  test.each([1, 2, limits.execTimeoutMs.max - 1, limits.execTimeoutMs.max])(
    'with timeoutMs %i is accepted',
    async (timeoutMs) => {
      expect((await exec({ cmd: ['true'], timeoutMs })).status).toBe(200)
    },
  )
  test.each([0, -1, limits.execTimeoutMs.max + 1, 1.5, -0, '1', null])(
    'with timeoutMs %j is refused',
    async (timeoutMs) => {
      expect((await exec({ cmd: ['true'], timeoutMs })).status).toBe(400)
    },
  )
  test.each([
    ['x', limits.execArgvItemBytes, 200],
    ['x', limits.execArgvItemBytes + 1, 400],
    ['中', 43_690, 200],
    ['中', 43_691, 400],
  ])('with an argument of %j, %i times, is answered with %i', async (character, times, status) => {
    expect((await exec({ cmd: ['true', character.repeat(times)] })).status).toBe(status)
  })
  test.each([[[]], ['ls -la'], [['']], [[1]], [null], [{ 0: 'true' }], [['nul\0']]])(
    'with cmd %j is refused',
    async (cmd) => {
      const answer = await exec({ cmd })
      expect(answer).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
    },
  )
})
