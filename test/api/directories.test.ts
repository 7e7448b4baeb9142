// Directories of a unit over HTTP: lists in pages, deletion, and archives in both directions that are larger than a
// file may be.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { SECOND } from '../../src/lib/clock.ts'
import { revokeCredential } from '../../src/store/credentials.ts'
import { makeKey, makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unit: Unit

beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

type Refused = { error: { code: string; message: string; details?: unknown } }
type Listing = { entries: { name: string; type: string }[]; next: string | null; truncated: boolean }

const call = async <T>(method: string, rest: string, body?: unknown) =>
  await service.call<T>(method, `/v1/units/${unit.id}${rest}`, {
    key: team.key,
    ...(body === undefined ? {} : { body }),
  })
const fetchRaw = async (method: string, rest: string, options: Parameters<Service['fetch']>[2] = {}) =>
  await service.fetch(method, `/v1/units/${unit.id}${rest}`, { key: team.key, ...options })
const put = async (path: string, content: string | Uint8Array) =>
  expect((await call('PUT', `/files?path=${path}`, content)).status).toBe(200)
const rowsOf = async (action: string) =>
  await service.app.db.selectFrom('audit').selectAll().where('action', '=', action).orderBy('id').execute()

test('a directory is listed in pages, sorted by name', async () => {
  for (const name of ['c', 'a', 'b', 'deep/er']) await put(`/app/pages/${name}`, 'x')
  const first = await call<Listing>('GET', '/directory?path=/app/pages&limit=2')
  expect(first.body).toMatchObject({ next: 'b', truncated: false })
  expect(first.body.entries.map(({ name }) => name)).toEqual(['a', 'b'])
  const second = await call<Listing>('GET', `/directory?path=/app/pages&after=${first.body.next}`)
  expect(second.body.entries).toMatchObject([{ name: 'c' }, { name: 'deep', type: 'directory' }])
  expect(second.body.next).toBeNull()
  expect((await call<Listing>('GET', '/directory?path=/')).status).toBe(200)
})

test('names that are not UTF-8 are paged, and their paths are taken and answered in base64', async () => {
  const base64 = (bytes: string) => Buffer.from(bytes, 'latin1').toString('base64')
  const named = (bytes: string) => `path=${encodeURIComponent(base64(bytes))}&pathEncoding=base64`
  for (const name of ['\xfe', '\xff', 'z']) {
    const path = `/app/bytes/${name}`
    const answer = name === 'z' ? { path } : { path: base64(path), pathEncoding: 'base64' }
    expect((await call('PUT', `/files?${named(path)}`, 'x')).body).toMatchObject(answer)
    expect((await call('GET', `/files?${named(path)}`)).body).toEqual({ ...answer, contentBase64: 'eA==' })
  }
  const seen: unknown[] = []
  for (let after: string | null = ''; after !== null; ) {
    const query: string = `path=/app/bytes&limit=1&after=${encodeURIComponent(after)}`
    const { body }: { body: Listing } = await call<Listing>('GET', `/directory?${query}`)
    seen.push(...body.entries)
    after = body.next
  }
  const encoding = 'base64'
  expect(seen).toMatchObject([
    { name: 'z' },
    { name: base64('\xfe'), encoding },
    { name: base64('\xff'), encoding },
  ])
  const posted = { path: base64('/app/bytes/\xff'), pathEncoding: 'base64', contentBase64: 'eQ==' }
  expect((await call('POST', '/files', posted)).status).toBe(200)
  expect((await call('DELETE', `/files?${named('/app/bytes/\xff')}`)).body).toMatchObject({
    pathEncoding: 'base64',
  })
  expect((await call('GET', `/files?${named('/app/bytes/\xff')}`)).status).toBe(404)
  expect((await rowsOf('unit.file.delete')).at(-1)?.input).toMatchObject({ pathEncoding: 'base64' })
})

test.each([
  ['GET', '/files?path=/app&pathEncoding=base64', 400],
  ['GET', '/files?path=YXBw&pathEncoding=base64', 400],
  ['GET', '/files?path=L2FwcC8uLi9h&pathEncoding=base64', 400],
  ['GET', '/files?path=/app&pathEncoding=hex', 400],
  ['GET', '/directory?path=/app/none', 404],
  ['GET', '/directory?path=app', 400],
  ['GET', '/directory?path=/app/../etc', 400],
  ['GET', '/directory?path=/app&limit=0', 400],
  ['GET', '/directory', 400],
  ['DELETE', '/files?path=/', 400],
  ['DELETE', '/files?path=/app/none', 404],
  ['DELETE', '/files?path=/app&recursive=yes', 400],
  ['GET', '/archive?path=/app/none', 404],
  ['GET', '/archive?path=/app/%00', 400],
  ['PUT', '/archive?path=relative', 400],
])('%s %s returns %i', async (method, rest, status) => {
  const answer = await call<Refused>(method, rest)
  expect([answer.status, answer.body.error.code]).toEqual([
    status,
    status === 404 ? 'not_found' : 'validation',
  ])
})

test('a directory that is not empty is deleted only with recursive=true', async () => {
  await put('/app/gone/a', 'x')
  const refused = await call<Refused>('DELETE', '/files?path=/app/gone')
  expect([refused.status, refused.body.error.code]).toEqual([409, 'invalid_state'])
  expect(refused.body.error.message).toContain('recursive=true')
  expect(refused.body.error.details).toEqual({ reason: 'directory_not_empty' })
  expect((await call('DELETE', '/files?path=/app/gone&recursive=true')).body).toEqual({ path: '/app/gone' })
  expect((await call('GET', '/directory?path=/app/gone')).status).toBe(404)
  expect(await rowsOf('unit.file.delete')).toContainEqual(
    expect.objectContaining({ target: unit.id, status: 200, input: { path: '/app/gone', recursive: true } }),
  )
})

test('an archive larger than a file may be is read and written, with one audit row each', async () => {
  for (const name of ['a', 'b', 'c'])
    await put(`/app/large/${name}`, new Uint8Array(limits.fileBytes).fill(7))
  const read = await fetchRaw('GET', '/archive?path=/app/large')
  expect([read.status, read.headers.get('content-type')]).toEqual([200, 'application/x-tar'])
  const archive = new Uint8Array(await read.arrayBuffer())
  expect(archive.length).toBeGreaterThan(3 * limits.fileBytes)
  const written = await call('PUT', '/archive?path=/app/copy', archive)
  expect(written.body).toEqual({ path: '/app/copy', bytes: archive.length })
  const copied = await call<Listing>('GET', '/directory?path=/app/copy')
  expect(copied.body.entries).toMatchObject([
    { name: 'a', bytes: limits.fileBytes },
    { name: 'b' },
    { name: 'c' },
  ])
  for (const [action, path] of [
    ['unit.archive.read', '/app/large'],
    ['unit.archive.write', '/app/copy'],
  ] as const)
    expect(await rowsOf(action)).toContainEqual(
      expect.objectContaining({ target: unit.id, status: 200, input: { path } }),
    )
})

test('an upload that is no archive or is compressed is refused', async () => {
  const none = await call<Refused>('PUT', '/archive?path=/app/none', 'hello')
  expect([none.status, none.body.error.code]).toEqual([400, 'validation'])
  const packed = await fetchRaw('PUT', '/archive?path=/a', {
    body: 'x',
    headers: { 'content-encoding': 'gzip' },
  })
  expect(packed.status).toBe(415)
})

test('an archive wakes a sleeping unit, and is refused by a stopped one', async () => {
  const asleep = await makeUnit(service, team)
  const path = `/v1/units/${asleep.id}`
  await service.call('POST', `${path}/sleep`, { key: team.key, body: { sleep: '5m', now: true } })
  await service
    .fetch('GET', `${path}/archive?path=/etc`, { key: team.key })
    .then((answer) => answer.arrayBuffer())
  const woken = await service.call<Unit>('GET', path, { key: team.key })
  expect(woken.body.state).toBe('running')
  await service.call('POST', `${path}/stop`, { key: team.key })
  for (const [method, rest] of [
    ['GET', '/archive?path=/etc'],
    ['PUT', '/archive?path=/etc'],
    ['GET', '/directory?path=/etc'],
    ['DELETE', '/files?path=/etc/a'],
  ] as const)
    expect((await service.call(method, path + rest, { key: team.key })).status).toBe(409)
})

test('an archive in progress ends within five seconds after its key is revoked', async () => {
  const key = await makeKey(service, team)
  const sending = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(100)),
  })
  const left = new AbortController()
  const request = {
    method: 'PUT',
    headers: { authorization: `Bearer ${key.secret}` },
    body: sending,
    duplex: 'half',
    signal: left.signal,
  } as RequestInit
  const answered = fetch(`${service.baseUrl}/v1/units/${unit.id}/archive?path=/app/cut`, request).catch(
    () => null,
  )
  const row = async () =>
    (await rowsOf('unit.archive.write')).find(({ credential_id }) => credential_id === key.id)?.status
  await expect.poll(row).toBe(null)
  await revokeCredential(service.app.db, { teamId: team.teamId, id: key.id, at: service.clock.now() })
  service.clock.advance(5 * SECOND)
  await expect.poll(row).toBe(401)
  left.abort()
  await answered
})
