// The socket between gateway and server, with both real ends: which messages the server refuses, and what survives its
// restart.

import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import { PORT_HOST_STACK } from '../contract/port-host.ts'
import type { Unit } from '../contract/unit.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { exposeUnit } from '../domain/units/expose.ts'
import { sleepUnit } from '../domain/units/sleep.ts'
import { stopUnit } from '../domain/units/stop.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { silentLog } from '../lib/log.ts'
import { openDatabase } from '../store/db.ts'
import { findEndpointRoutes } from '../store/endpoints.ts'
import { createWakeLeases, type WakeLeases } from './server-link/wake-leases.ts'
import { connectToServer, type ServerClient } from './server-link/client.ts'
import { serveWakes } from './server-link/server.ts'

let domain: TestDomain
let caller: Caller
let unit: Unit
let directory: string
let socketPath: string
let serving: { close(): Promise<void> }
let server: ServerClient

beforeAll(async () => {
  domain = await createTestDomain()
  caller = await domain.makeCaller()
  unit = await makeUnit(domain.app, caller)
})
afterAll(async () => await domain.close())
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-wake-'))
  socketPath = join(directory, 'wake.sock')
  await serve()
  server = connectToServer({ address: { socketPath }, clock: systemClock })
})
afterEach(async () => {
  await serving.close()
  await rm(directory, { recursive: true, force: true })
})

async function serve(): Promise<void> {
  serving = await serveWakes(domain.app, { socketPath, socketGid: process.getegid?.() ?? 0 })
}

/** Returns what the server sends after this line until it closes the connection. */
async function saidTo(line: string): Promise<string> {
  const socket = connect(socketPath)
  socket.write(`${line}\n`)
  let said = ''
  // Closing with unread input appears as a connection reset.
  socket.on('error', () => {})
  socket.on('data', (chunk) => (said += String(chunk)))
  await once(socket, 'close')
  return said
}

const asking = (operation: string, request: unknown) => JSON.stringify({ id: 1, operation, request })

const until = async (check: () => boolean) => {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('the wake socket', () => {
  it('returns the state of a unit and which units in use are awake', async () => {
    const address = domain.engine.machines().find(({ id }) => id === unit.id)?.address
    expect(await server.ask('use', { unitId: unit.id })).toEqual({ kind: 'running', generation: 1, address })
    const nobody = newId('unit')
    expect(await server.ask('use', { unitId: nobody })).toEqual({ kind: 'refused', reason: 'gone' })
    expect(await server.ask('used', { unitIds: [unit.id, nobody] })).toEqual({ awake: [unit.id] })
  })

  it('opens what listens for a unit alone, of the units whose ports have names', async () => {
    const sandbox = await makeUnit(domain.app, caller, { name: 'sandbox' }, { stack: PORT_HOST_STACK })
    for (const { id } of [unit, sandbox]) domain.engine.listenAlone(id, 3000, 20_000)
    const ask = async (unitId: string, port: number) => await server.ask('loopback', { unitId, port })
    expect(await ask(sandbox.id, 3000)).toEqual({ port: 20_000 })
    expect(await ask(sandbox.id, 3001)).toEqual({ port: null })
    expect(await ask(unit.id, 3000)).toEqual({ port: null })
    expect(await ask(newId('unit'), 3000)).toEqual({ port: null })
    domain.engine.fail('openLoopback', 'frozen')
    expect(await ask(sandbox.id, 3000)).toEqual({ port: null })
  })

  it('accepts the list of units with visits in progress', async () => {
    expect(await server.ask('visits', { unitIds: [unit.id] })).toEqual({})
    expect(domain.app.activity.uses.of(unit.id)).toBe(1)
    await server.ask('visits', { unitIds: [] })
    expect(domain.app.activity.uses.ids()).toEqual([])
  })

  it('can be opened by its group only', async () => {
    expect((await stat(socketPath)).mode & 0o777).toBe(0o660)
  })

  it.each([
    ['a missing field', asking('use', {})],
    ['a malformed id', asking('use', { unitId: 'unit_x' })],
    ['a port that is none', asking('loopback', { unitId: newId('unit'), port: 65_536 })],
    ['an extra field', asking('use', { unitId: newId('unit'), as: 'cred_1' })],
    ['invalid JSON', 'not JSON'],
    ['a line that is too long', asking('use', { unitId: 'a'.repeat(1024 * 1024) })],
    ['malformed ids', asking('used', { unitIds: ['; drop table units'] })],
    ['an object instead of a list', asking('visits', { unitIds: {} })],
    ['too many ids', asking('visits', { unitIds: Array.from({ length: 16_385 }, () => newId('unit')) })],
    ['an operation of the engine', asking('exec', {})],
    ['a question of gateways of other hosts', asking('routes', { names: [] })],
    ['an operation of JavaScript', asking('constructor', {})],
    ['a string for the request id', '{"id":"1","operation":"visits","request":{"unitIds":[]}}'],
    ['HTTP', 'POST /use HTTP/1.1'],
  ])('closes the connection on %s', async (_, line) => {
    // Only the greeting was sent.
    expect(await saidTo(line)).toBe('\n')
  })

  it('responds to each request as soon as its result is ready', async () => {
    const release = domain.engine.hang('pull')
    const { id } = await makeUnit(domain.app, caller, { name: 'later' }, { wait: false })
    const order: string[] = []
    const later = server.ask('use', { unitId: id }).then(() => order.push('later'))
    await server.ask('use', { unitId: unit.id }).then(() => order.push('at once'))
    release()
    await later
    expect(order).toEqual(['at once', 'later'])
  })

  it('returns an error while the database is unavailable', async () => {
    const db = openDatabase(`postgres:///berth?host=${directory}`, silentLog)
    const broken = { ...domain.app, db }
    const other = join(directory, 'other.sock')
    const failing = await serveWakes(broken, { socketPath: other, socketGid: process.getegid?.() ?? 0 })
    const asked = connectToServer({
      address: { socketPath: other },
      clock: systemClock,
    }).ask('use', { unitId: unit.id })
    await expect(asked).rejects.toThrow('cannot answer')
    await failing.close()
    await db.destroy()
  })

  it('is removed when the server closes, and pending requests fail', async () => {
    const release = domain.engine.hang('pull')
    const { id } = await makeUnit(domain.app, caller, { name: 'slow' }, { wait: false })
    const asked = server.ask('use', { unitId: id })
    const refused = expect(asked).rejects.toThrow()
    await new Promise((resolve) => setTimeout(resolve, 50))
    await serving.close()
    await refused
    await expect(server.ask('use', { unitId: unit.id })).rejects.toThrow('ENOENT')
    release()
    await serve()
  })
})

describe('a client that follows run-end events', () => {
  it('is told when units stop, when the server closes and when it is back', async () => {
    const heard: string[] = []
    const done = new AbortController()
    const following = server.follow(
      {
        onConnected: () => heard.push('there'),
        onRunEnded: (id) => heard.push(id),
        onDisconnected: () => heard.push('away'),
      },
      done.signal,
    )
    await until(() => heard.length === 1)
    const departing = await makeUnit(domain.app, caller, { name: 'departing' })
    await stopUnit(domain.app, caller, departing.id)
    await until(() => heard.length === 2)
    await serving.close()
    await until(() => heard.length === 3)
    await serve()
    await until(() => heard.length === 4)
    expect(heard).toEqual(['there', departing.id, 'away', 'there'])
    done.abort()
    await following
    await until(() => domain.app.activity.events.listenerCount('runEnded') === 0)
    expect(heard).toEqual(['there', departing.id, 'away', 'there', 'away'])
  })
})

describe('two gateways of one host', () => {
  let gateways: WakeLeases[]

  beforeEach(() => {
    gateways = [0, 1].map((worker) => {
      const link = connectToServer({ address: { socketPath }, clock: systemClock })
      return createWakeLeases({ server: link, worker, clock: systemClock, log: silentLog })
    })
  })
  afterEach(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()))
  })

  it('keep a unit in use until the last long visit at either has ended', async () => {
    const ends = gateways.map(({ activity }) => activity.begin(unit.id, newId('endpoint')))
    await until(() => domain.app.activity.uses.of(unit.id) === 2)
    expect(domain.app.activity.sessions.endpointsOf(unit.id)).toHaveLength(2)
    ends[0]?.()
    await until(() => domain.app.activity.uses.of(unit.id) === 1)
    await expect(asleep()).rejects.toMatchObject({ status: 409 })
    ends[1]?.()
    await until(() => domain.app.activity.uses.of(unit.id) === 0)
    await asleep()
  })

  it('wake a unit once, however many visits wait for it at both, with a message of each', async () => {
    const name = await exposed()
    await asleep()
    const [route] = await findEndpointRoutes(domain.app.db, [name])
    if (!route) throw new Error('the unit has no endpoint')
    const before = domain.engine.calls.length
    const woken = await Promise.all(
      Array.from({ length: 50 }).flatMap(() => gateways.map(async ({ waker }) => await waker.wake(route))),
    )
    expect(new Set(woken.map(({ kind }) => kind))).toEqual(new Set(['running']))
    const changes = domain.engine.calls.slice(before).map(({ operation }) => operation)
    expect(changes.filter((operation) => ['thaw', 'start'].includes(operation))).toHaveLength(1)
  })

  const asleep = async () => {
    const how = { sleep: '30m', stack: false, now: true } as const
    await sleepUnit(domain.app, caller, unit.id, how)
  }

  async function exposed(): Promise<string> {
    const published = { port: 80, mode: 'public', rotate: false } as const
    const { url } = await exposeUnit(domain.app, caller, unit.id, published)
    return new URL(url).hostname.split('.')[0] ?? ''
  }
})
