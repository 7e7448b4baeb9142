// The socket between gateway and server, both ends of it real: what it refuses, and what outlives a restart of the
// server.

import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../test/support/domain.ts'
import type { Unit } from '../contract/unit.ts'
import type { Caller } from '../domain/credentials/caller.ts'
import { stopUnit } from '../domain/units/stop.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
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
  server = connectToServer({ socketPath, clock: systemClock })
})
afterEach(async () => {
  await serving.close()
  await rm(directory, { recursive: true, force: true })
})

async function serve(): Promise<void> {
  serving = await serveWakes(domain.app, { socketPath, socketGid: process.getegid?.() ?? 0 })
}

/** What the server says to these lines until it hangs up. */
async function saidTo(line: string): Promise<string> {
  const socket = connect(socketPath)
  socket.write(`${line}\n`)
  let said = ''
  // Hung up on with something left to read, which shows as a reset.
  socket.on('error', () => {})
  socket.on('data', (chunk) => (said += String(chunk)))
  await once(socket, 'close')
  return said
}

const asking = (operation: string, request: unknown) => JSON.stringify({ id: 1, operation, request })

const until = async (check: () => boolean) => {
  while (!check()) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe('the socket', () => {
  it('answers for a unit, and for units in use', async () => {
    const address = domain.engine.machines().find(({ id }) => id === unit.id)?.address
    expect(await server.ask('use', { unitId: unit.id })).toEqual({ kind: 'running', generation: 1, address })
    const nobody = newId('unit')
    expect(await server.ask('use', { unitId: nobody })).toEqual({ kind: 'refused', reason: 'gone' })
    expect(await server.ask('used', { unitIds: [unit.id, nobody] })).toEqual({ awake: [unit.id] })
  })

  it('takes word of visits under way', async () => {
    expect(await server.ask('visits', { unitIds: [unit.id] })).toEqual({})
    expect(domain.app.activity.uses.of(unit.id)).toBe(1)
    await server.ask('visits', { unitIds: [] })
    expect(domain.app.activity.uses.ids()).toEqual([])
  })

  it('is for its group alone', async () => {
    expect((await stat(socketPath)).mode & 0o777).toBe(0o660)
  })

  it.each([
    ['a request without its field', asking('use', {})],
    ['what is no id', asking('use', { unitId: 'unit_x' })],
    ['more than the operation takes', asking('use', { unitId: newId('unit'), as: 'cred_1' })],
    ['no JSON', 'not JSON'],
    ['a line that is too long', asking('use', { unitId: 'a'.repeat(1024 * 1024) })],
    ['no ids', asking('used', { unitIds: ['; drop table units'] })],
    ['no list of ids', asking('visits', { unitIds: {} })],
    ['too many ids', asking('visits', { unitIds: Array.from({ length: 16_385 }, () => newId('unit')) })],
    ['an operation of the engine', asking('exec', {})],
    ['an operation of JavaScript', asking('constructor', {})],
    ['an id of a question that is none', '{"id":"1","operation":"visits","request":{"unitIds":[]}}'],
    ['HTTP', 'POST /use HTTP/1.1'],
  ])('hangs up on %s', async (_, line) => {
    // Nothing but the greeting.
    expect(await saidTo(line)).toBe('\n')
  })

  it('answers each question as soon as it can', async () => {
    const release = domain.engine.hang('pull')
    const { id } = await makeUnit(domain.app, caller, { name: 'later' }, { wait: false })
    const order: string[] = []
    const later = server.ask('use', { unitId: id }).then(() => order.push('later'))
    await server.ask('use', { unitId: unit.id }).then(() => order.push('at once'))
    release()
    await later
    expect(order).toEqual(['at once', 'later'])
  })

  it('says that it cannot say while the database is away', async () => {
    const broken = { ...domain.app, db: domain.app.db.withSchema('nowhere') }
    const other = join(directory, 'other.sock')
    const failing = await serveWakes(broken, { socketPath: other, socketGid: process.getegid?.() ?? 0 })
    const asked = connectToServer({ socketPath: other, clock: systemClock }).ask('use', { unitId: unit.id })
    await expect(asked).rejects.toThrow('cannot answer')
    await failing.close()
  })

  it('is gone with its server, and nobody waits for what was asked of it', async () => {
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

describe('a client that follows', () => {
  it('hears of units that stop running, of a server that goes, and of the next one', async () => {
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
