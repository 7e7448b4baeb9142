// A host that joins: which rows there are afterwards, and who cannot join.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, type TestDomain } from '../../test/support/domain.ts'
import { newId } from '../lib/ids.ts'
import { listHostEvents, listHosts, meetLocalHost, setHostState } from './hosts.ts'
import { joinHost } from './joined-hosts.ts'

let domain: TestDomain
beforeAll(async () => {
  domain = await createTestDomain()
})
afterAll(async () => await domain.close())

const at = new Date()
const join = async (name: string, instance: string, address = '10.0.0.2:7075') =>
  await joinHost(domain.app.db, { newId: newId('host'), name, instance, address, at })
const rowsOf = async (instance: string) =>
  (await listHosts(domain.app.db)).filter((host) => host.instance === instance)
const setState = async (instance: string, to: 'ready' | 'lost' | 'removed') => {
  const [host] = await rowsOf(instance)
  await setHostState(domain.app.db, { id: host?.id ?? '', from: ['joining', 'ready', 'lost'], to, at })
}

it('a machine that joins is a host that is joining, and its log says so', async () => {
  expect(await join('east', 'east')).toEqual({ kind: 'joined' })
  expect(await rowsOf('east')).toMatchObject([{ name: 'east', state: 'joining', address: '10.0.0.2:7075' }])
  const events = await listHostEvents(domain.app.db, { host: 'east', limit: 10 })
  expect(events.map(({ event }) => event)).toEqual(['joining'])
})

it('a machine that joins again keeps its state, at the address that it now has', async () => {
  await setState('east', 'ready')
  expect(await join('east', 'east', '10.0.0.9:7075')).toEqual({ kind: 'joined' })
  expect(await rowsOf('east')).toMatchObject([{ state: 'ready', address: '10.0.0.9:7075' }])
})

it('neither a name nor a machine is of two hosts', async () => {
  expect(await join('east', 'othr')).toEqual({ kind: 'name_taken' })
  expect(await join('west', 'east')).toEqual({ kind: 'has_name', name: 'east' })
  await meetLocalHost(domain.app.db, { instance: 'main', name: 'main', newId: newId('host') })
  expect(await join('west', 'main')).toEqual({ kind: 'had_server', name: 'main' })
  expect(await rowsOf('othr')).toEqual([])
})

it('a host that was given up joins again as the same host', async () => {
  const [before] = await rowsOf('east')
  await setState('east', 'lost')
  expect(await join('east', 'east')).toEqual({ kind: 'joined' })
  expect(await rowsOf('east')).toMatchObject([{ id: before?.id, state: 'joining' }])
})

it('the name of a removed host is free for another machine, and the removed one can come back by another name', async () => {
  await setState('east', 'removed')
  expect(await join('east', 'othr')).toEqual({ kind: 'joined' })
  const [former] = await rowsOf('east')
  expect(former).toMatchObject({ state: 'removed', name: expect.stringMatching(/^east-.{8}$/) })
  expect(await join('north', 'east')).toEqual({ kind: 'joined' })
  expect(await rowsOf('east')).toMatchObject([{ id: former?.id, name: 'north', state: 'joining' }])
})
