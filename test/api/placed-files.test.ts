// Files of a unit over HTTP beyond one JSON answer: streams, facts, moves, new folders, lists with depth, owners.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FileFacts, FileWritten } from '../../src/contract/files.ts'
import type { ProcessList, ProcessTable } from '../../src/contract/process.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

const MB = 1024 * 1024

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
  unit = await makeUnit(service, team)
})
afterAll(async () => await service.close())

type Refused = { error: { code: string; message: string } }
const call = async <T>(method: string, rest: string, body?: unknown) =>
  await service.call<T & Refused>(method, `/v1/units/${unit.id}${rest}`, {
    key: team.key,
    ...(body === undefined ? {} : { body }),
  })
const fetchRaw = async (method: string, rest: string, options: Parameters<Service['fetch']>[2] = {}) =>
  await service.fetch(method, `/v1/units/${unit.id}${rest}`, { key: team.key, ...options })

describe('a file as a stream', () => {
  it('comes back byte for byte, with its mode, also beyond a megabyte', async () => {
    const content = Buffer.alloc(5 * MB, 'bytes ')
    const written = await call<FileWritten>('PUT', '/files/content?path=/data/big&mode=0600', content)
    expect(written).toMatchObject({ status: 200, body: { bytes: content.length, verified: true } })
    const read = await fetchRaw('GET', '/files/content?path=/data/big')
    expect(read.headers.get('content-type')).toBe('application/octet-stream')
    expect(read.headers.get('berth-file-mode')).toBe('0600')
    expect(Buffer.from(await read.arrayBuffer()).equals(content)).toBe(true)
  })

  it('that is not there is a 404 before the first byte', async () => {
    const answer = await call<Refused>('GET', '/files/content?path=/nowhere')
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })

  it('of another team is refused', async () => {
    const other = await makeTeam(service)
    const path = `/v1/units/${unit.id}/files/content?path=/data/big`
    expect((await service.fetch('GET', path, { key: other.key })).status).toBe(403)
  })
})

describe('files in place', () => {
  it('belong to the user that the call names', async () => {
    await call('PUT', '/files?path=/srv/mine&user=daemon', 'x')
    expect((await call<FileFacts>('GET', '/files/facts?path=/srv/mine')).body).toMatchObject({
      path: '/srv/mine',
      type: 'file',
      bytes: 1,
      mode: '0644',
      uid: 1,
      owner: 'daemon',
      target: null,
    })
  })

  it('are refused for a user that the unit does not have, with the name of the field', async () => {
    const answer = await call<Refused>('PUT', '/files?path=/srv/other&user=nobody-here', 'x')
    expect(answer.status).toBe(400)
    expect(answer.body.error.message).toContain('user: /etc/passwd of the unit has no user "nobody-here"')
    expect((await call<Refused>('PUT', '/files?path=/srv/other&user=a:b', 'x')).status).toBe(400)
  })

  it('are moved, with the folders above made', async () => {
    await call('PUT', '/files?path=/srv/draft', 'content')
    const moved = await call('POST', '/files/move', { path: '/srv/draft', to: '/srv/done/report' })
    expect(moved).toMatchObject({ status: 200, body: { path: '/srv/done/report' } })
    expect((await call('GET', '/files/facts?path=/srv/draft')).status).toBe(404)
    expect((await call<Refused>('POST', '/files/move', { path: '/srv/done', to: '../x' })).status).toBe(400)
  })

  it('are in folders that are made once, and lists go as far down as is asked', async () => {
    expect((await call('POST', '/directory', { path: '/tree/a/b' })).body).toMatchObject({ made: true })
    expect((await call('POST', '/directory', { path: '/tree/a/b' })).body).toMatchObject({ made: false })
    await call('PUT', '/files?path=/tree/a/b/c', 'x')
    const listed = await call<{ entries: { name: string }[]; next: string | null }>(
      'GET',
      '/directory?path=/tree&depth=2&limit=1',
    )
    expect(listed.body).toMatchObject({ entries: [{ name: 'a' }], next: 'a' })
    const rest = await call<{ entries: { name: string; owner: string }[] }>(
      'GET',
      '/directory?path=/tree&depth=3&after=a',
    )
    expect(rest.body.entries).toMatchObject([{ name: 'a/b' }, { name: 'a/b/c', owner: 'root' }])
    expect((await call('GET', '/directory?path=/tree&depth=33')).status).toBe(400)
  })
})

describe('processes', () => {
  it('are found by their tag, and by their pid in the table of all that runs', async () => {
    const started = await call<{ id: string; pid: number }>('POST', '/processes', {
      cmd: ['sleep', 'infinity'],
      tag: 'build',
    })
    expect(started).toMatchObject({ status: 201, body: { tag: 'build' } })
    const { id, pid } = started.body
    expect((await call<ProcessList>('GET', '/processes?tag=build')).body.processes).toMatchObject([{ id }])
    expect((await call<ProcessList>('GET', '/processes?tag=other')).body.processes).toEqual([])
    const { processes } = (await call<ProcessTable>('GET', '/process-table')).body
    expect(processes.find((each) => each.processId === id)).toMatchObject({ pid, tag: 'build', user: 'root' })
    expect((await call('POST', `/process-table/${pid}/signal`, { signal: 'INT' })).status).toBe(200)
    await expect
      .poll(async () => (await call('GET', `/processes/${id}`)).body)
      .toMatchObject({ state: 'exited', exitCode: 130 })
    expect((await call('POST', '/process-table/99999/signal', {})).status).toBe(404)
    expect((await call('POST', '/process-table/0/signal', {})).status).toBe(404)
  })

  it('and commands run for the user that the call names', async () => {
    const run = await call<{ stdout: string }>('POST', '/exec', { cmd: ['id', '-u'], user: 'daemon' })
    expect(run.body.stdout).toBe('1\n')
    const refused = await call<Refused>('POST', '/exec', { cmd: ['id'], user: 'nobody-here' })
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'validation' } } })
    expect((await call('POST', '/processes', { cmd: ['id'], user: 'nobody-here' })).status).toBe(400)
  })

  it('have their output byte for byte where the call asks for base64', async () => {
    const run = await call('POST', '/exec', { cmd: ['echo', 'é'], encoding: 'base64' })
    expect(run.body).toMatchObject({ stdout: 'w6kK', stderr: '', encoding: 'base64' })
  })
})
