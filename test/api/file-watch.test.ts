// GET /v1/units/{id}/files/watch: the stream of what changes in a directory.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Unit } from '../../src/contract/unit.ts'
import { collectEvents, readEvents } from '../support/events.ts'
import { makeTeam, makeUnit, type TestTeam } from '../support/make.ts'
import { type Service, startService } from '../support/service.ts'

let service: Service
let team: TestTeam
let unit: Unit
beforeAll(async () => {
  service = await startService()
  team = await makeTeam(service)
})
beforeEach(async () => {
  unit = await makeUnit(service, team)
  await write('/srv/kept')
})
afterAll(async () => await service.close())

const write = async (path: string) => {
  const file = `/v1/units/${unit.id}/files?path=${encodeURIComponent(path)}`
  expect((await service.fetch('PUT', file, { key: team.key, body: 'x' })).status).toBe(200)
}
const watch = async (query: string, { key } = team) =>
  await service.fetch('GET', `/v1/units/${unit.id}/files/watch?${query}`, {
    key,
    headers: { accept: 'text/event-stream' },
  })
const act = async (method: string, rest: string, body?: unknown) =>
  await service.call(method, `/v1/units/${unit.id}${rest}`, {
    key: team.key,
    ...(body === undefined ? {} : { body }),
  })

it('a watch says that it is ready, then what is made, renamed and removed, and why it ends', async () => {
  const events: unknown[] = []
  for await (const { event, data } of readEvents(await watch('path=/srv'))) {
    events.push([event, data])
    if (event !== 'ready') continue
    await write('/srv/new')
    await write('/srv/deeper/unseen')
    await act('POST', '/files/move', { path: '/srv/new', to: '/srv/newer' })
    await act('DELETE', '/files?path=/srv/newer')
    await act('POST', '/stop')
  }
  const change = (path: string) => ({ path, isDirectory: false })
  expect(events).toEqual([
    ['ready', {}],
    ['create', change('new')],
    ['rename', change('new')],
    ['create', change('newer')],
    ['remove', change('newer')],
    ['end', { reason: 'stopped' }],
  ])
})

it('a recursive watch tells paths from its directory, in base64 where they are not UTF-8', async () => {
  for await (const { event, data } of readEvents(await watch('path=/srv&recursive=true'))) {
    if (event === 'ready') {
      const path = Buffer.concat([Buffer.from('/srv/deep/'), Buffer.from([0xff])]).toString('base64')
      await act('PUT', `/files?path=${encodeURIComponent(path)}&pathEncoding=base64`, 'x')
      continue
    }
    const named = { path: Buffer.from([...Buffer.from('deep/'), 0xff]).toString('base64') }
    expect([event, data]).toEqual(['create', { ...named, pathEncoding: 'base64', isDirectory: false }])
    break
  }
})

it('a watch wakes its unit and does not keep it awake', async () => {
  await act('POST', '/sleep', { sleep: '10m', now: true })
  for await (const { event } of readEvents(await watch('path=/srv'))) {
    expect(event).toBe('ready')
    expect((await act('POST', '/sleep', { sleep: '10m', now: true })).status).toBe(200)
    break
  }
  expect((await act('GET', '')).body).toMatchObject({ state: 'sleeping' })
})

it('what is not there, is no directory or is of another team is refused with its status', async () => {
  expect((await watch('path=/nowhere')).status).toBe(404)
  expect((await watch('path=/srv/kept')).status).toBe(400)
  expect((await watch('path=relative')).status).toBe(400)
  expect((await watch('path=/srv', await makeTeam(service))).status).toBe(403)
})

it('a watch of a unit that is destroyed ends', async () => {
  const answer = await watch('path=/srv')
  const events = collectEvents(answer)
  await act('DELETE', '')
  expect((await events).at(-1)).toMatchObject({ event: 'end', data: { reason: 'stopped' } })
})
