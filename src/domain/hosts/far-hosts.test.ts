// Units on three hosts, two of them behind TLS: where they are placed, and what callers and money see of a host that is
// away, comes back, or was given up.

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { whenFree } from '../../../test/support/taken-port.ts'
import { type App, createApp } from '../../app.ts'
import { issueIdentity } from '../../certificates/fleet-ca.ts'
import { openEpochs } from '../../engine/epochs.ts'
import { createFleet } from '../../engine/fleet.ts'
import { connectFarEngine } from '../../engine/ipc/client.ts'
import { type ServedEngine, serveEngine } from '../../engine/ipc/server.ts'
import { type FleetIdentity, parseIdentity } from '../../lib/fleet-identity.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log.ts'
import { decideAboutHost } from '../../operator/hosts-states.ts'
import { countUnitsByHost, insertHost, listHosts, setHostState } from '../../store/hosts.ts'
import { joinHost } from '../../store/joined-hosts.ts'
import { listUnitsOfHost } from '../../store/units-of-jobs.ts'
import { HOST_TAKEN_OVER } from './away.ts'
import type { Caller } from '../credentials/caller.ts'
import { forkUnit } from '../forks/fork-unit.ts'
import { destroyUnit } from '../units/destroy.ts'
import { execInUnit } from '../units/exec.ts'
import { readFile, writeFile } from '../units/files.ts'
import { getUnit } from '../units/get.ts'
import { reconcileMachines, recover } from '../units/reconcile.ts'
import { watchHosts } from '../units/watch-hosts.ts'
import { listProcesses } from '../units/processes.ts'
import { startUnit } from '../units/start.ts'
import { stopUnit } from '../units/stop.ts'

const SECOND = 1_000
const names = ['east', 'west'] as const
type Name = (typeof names)[number]
type Far = { id: string; fake: FakeEngine; port: number; served: ServedEngine; identity: FleetIdentity }

let domain: TestDomain
let directory: string
let app: App
const far = {} as Record<Name, Far>
/** The server's. */
let server: FleetIdentity

async function serve(name: Name, fake: FakeEngine, identity: FleetIdentity, port: number) {
  const tls = { host: '127.0.0.1', port, identity }
  const epochs = await openEpochs(join(directory, `${name}.epoch`))
  return await whenFree(async () => {
    const socketPath = join(directory, `${randomUUID()}.sock`)
    return await serveEngine({ engine: fake, epochs, socketPath, socketGid: 0, tls, log: silentLog })
  })
}

beforeAll(async () => {
  domain = await createTestDomain()
  directory = await mkdtemp(join(tmpdir(), 'berth-hosts-'))
  const now = new Date()
  server = parseIdentity(await issueIdentity(directory, { role: 'server', host: 'main' }, now))
  for (const [index, name] of names.entries()) {
    const identity = parseIdentity(await issueIdentity(directory, { role: 'engine', host: name }, now))
    const fake = createFakeEngine({ clock: domain.clock, subnet: 80 + index, instance: name })
    const served = await serve(name, fake, identity, 0)
    const port = served.tls?.port ?? 0
    far[name] = { id: newId('host'), fake, port, served, identity }
    await insertHost(domain.app.db, { id: far[name].id, name, address: `127.0.0.1:${port}`, region: null })
  }
  const fleet = createFleet(domain.app.fleet.local(), ({ name, address }) => {
    const [host = '', port] = address.split(':')
    // Here the clock is set: nothing waits by the real one for a host that is away.
    const at = { host, port: Number(port), name, identity: server, restartsWithinMs: 0 }
    return connectFarEngine({ address: at, epoch: 1, onLost: () => {} })
  })
  // An engine that has not said within a second what memory it has is passed over: a busy machine must not decide that here.
  const capacityOf: App['capacityOf'] = (hostId) => () =>
    fleet
      .engineOf({ hostId })
      .capacity()
      .catch(() => null)
  app = { ...createApp({ ...domain.app, clock: domain.clock, fleet }), capacityOf }
  await recover(app)
  await joined()
}, 60_000)
afterAll(async () => {
  await Promise.all(names.map((name) => far[name].served.close()))
  await rm(directory, { recursive: true })
  await domain.close()
})

/** Until the server has both. */
async function joined(): Promise<void> {
  const answering = () => app.fleet.hosts().filter(({ awaySince }) => awaySince === null).length
  while (answering() < 3) {
    await watchHosts(app)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await reconcileMachines(app)
}

/** Lets time pass in rounds of the job, of which each waits for what it has begun. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 2 * SECOND) {
    domain.clock.advance(2 * SECOND)
    await watchHosts(app)
    for (const { id } of app.fleet.hosts()) await app.activity.operations.find(`hello ${id}`)?.catch(() => {})
    await reconcileMachines(app)
  }
}

async function unitsOn(name: Name): Promise<{ caller: Caller; id: string }> {
  for (;;) {
    // One that has the image is preferred until it has half as much memory.
    for (const host of app.fleet.hosts()) host.images.clear()
    const caller = await domain.makeCaller()
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    if (unit.host.id === far[name].id) return { caller, id: unit.id }
  }
}

const run = async (caller: Caller, id: string) =>
  (await execInUnit(app, caller, id, { cmd: ['echo', 'here'], timeoutMs: SECOND })).stdout
const stateOf = async (caller: Caller, id: string) => (await getUnit(app, caller, id)).state

describe('with two hosts behind TLS', () => {
  it('thirty teams of three units lie on all three hosts, and no team on two', async () => {
    // A host that has the image is preferred, which the first create would bring to one of them.
    for (const { images } of app.fleet.hosts()) images.add('berth.local/debian:12')
    const teams = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const caller = await domain.makeCaller()
        const units = ['one', 'two', 'three'].map((name) => makeUnit(app, caller, { name }))
        return await Promise.all(units)
      }),
    )
    const hosts = teams.map((units) => new Set(units.map(({ host }) => host.id)))
    expect(hosts.filter(({ size }) => size !== 1)).toEqual([])
    expect(new Set(hosts.flatMap((ids) => [...ids])).size).toBe(3)
    const machines = [domain.engine, far.east.fake, far.west.fake].map((fake) => fake.machines().length)
    expect(machines.reduce((sum, each) => sum + each, 0)).toBe(90)
  }, 120_000)

  it('every call works for a unit behind TLS, and its copies are where it is', async () => {
    const { caller, id } = await unitsOn('east')
    expect(await run(caller, id)).toBe('here\n')
    await writeFile(app, caller, id, '/tmp/a', Buffer.from('here'))
    expect((await readFile(app, caller, id, '/tmp/a')).contentBase64).toBe('aGVyZQ==')
    expect(await listProcesses(app, caller, id)).toEqual({ processes: [] })
    await stopUnit(app, caller, id)
    await startUnit(app, caller, id)
    expect(await stateOf(caller, id)).toBe('running')
    const { units } = await forkUnit(app, caller, id, { name: 'copy', wait: true, waitTimeoutMs: 60_000 })
    expect(units.map(({ host }) => host.id)).toEqual([far.east.id])
    await destroyUnit(app, caller, id)
    expect(far.east.fake.machines().map((machine) => machine.id)).not.toContain(id)
  }, 60_000)

  it('a host without memory to spare is left out, and without any the answer says when to come back', async () => {
    const all = [domain.engine, far.east.fake, far.west.fake]
    domain.engine.setCapacity({ availableMemoryMb: 10 })
    far.east.fake.setCapacity({ availableMemoryMb: 10 })
    domain.clock.advance(10 * SECOND)
    for (let count = 0; count < 5; count += 1)
      expect((await makeUnit(app, await domain.makeCaller())).host.id).toBe(far.west.id)
    far.west.fake.setCapacity({ availableMemoryMb: 10 })
    domain.clock.advance(10 * SECOND)
    const refused = makeUnit(app, await domain.makeCaller())
    await expect(refused).rejects.toMatchObject({ status: 503, retryAfterS: 10 })
    for (const engine of all) engine.setCapacity({ availableMemoryMb: 65_536 })
    domain.clock.advance(10 * SECOND)
  }, 60_000)

  it('a host that is being emptied takes no new teams, and its units go on', async () => {
    const { caller, id } = await unitsOn('west')
    const { db } = app
    const drain = { id: far.west.id, at: domain.clock.now() }
    await setHostState(db, { ...drain, from: ['ready'], to: 'draining' })
    await watchHosts(app)
    for (let count = 0; count < 10; count += 1) {
      const unit = await makeUnit(app, await domain.makeCaller())
      expect(unit.host.id).not.toBe(far.west.id)
    }
    await expect(makeUnit(app, caller, { name: 'more' })).rejects.toMatchObject({ status: 503 })
    await stopUnit(app, caller, id)
    await startUnit(app, caller, id)
    expect(await run(caller, id)).toBe('here\n')
    await setHostState(db, { ...drain, from: ['draining'], to: 'ready' })
    await watchHosts(app)
  }, 60_000)

  it('a host that does not answer is away: its units say so at once, others go on, and it is taken back', async () => {
    const { caller, id } = await unitsOn('east')
    const other = await unitsOn('west')
    await reconcileMachines(app)
    const before = (await getUnit(app, caller, id)).costCentsSoFar
    await far.east.served.close()
    await pass(20 * SECOND)
    const away = app.fleet.find(far.east.id)?.awaySince
    expect(away).toBeInstanceOf(Date)
    await expect(run(caller, id)).rejects.toMatchObject({
      status: 503,
      code: 'unavailable',
      details: { reason: 'host_away', since: away?.toISOString() },
      retryAfterS: expect.any(Number),
    })
    expect(await run(other.caller, other.id)).toBe('here\n')
    await pass(60 * SECOND)
    expect(await stateOf(caller, id)).toBe('running')
    const { costCentsSoFar } = await getUnit(app, caller, id)
    expect((costCentsSoFar - before) * 7200).toBeLessThan(20)

    far.east.served = await serve('east', far.east.fake, far.east.identity, far.east.port)
    await joined()
    expect(await run(caller, id)).toBe('here\n')
    const starts = far.east.fake.calls.filter(({ operation, id: of }) => operation === 'start' && of === id)
    expect(starts).toHaveLength(1)
  }, 120_000)

  it('the units of a host that was given up have lost their runs, and can be destroyed', async () => {
    const { caller, id } = await unitsOn('west')
    const { caller: gone, id: goneId } = await unitsOn('west')
    await reconcileMachines(app)
    await far.west.served.close()
    await pass(20 * SECOND)
    await setHostState(app.db, { id: far.west.id, from: ['ready'], to: 'lost', at: domain.clock.now() })
    await pass(4 * SECOND)
    const error = expect.stringMatching(/^The host of this unit was given up.* Destroy the unit/)
    const ended = { state: 'sleeping', stoppedReason: 'provider', error }
    expect(await getUnit(app, caller, id)).toMatchObject(ended)
    await expect(run(caller, id)).rejects.toMatchObject({
      code: 'provider_error',
      message: error,
      details: { reason: 'host_lost', unitId: id },
    })
    expect(await getUnit(app, caller, id)).toMatchObject(ended)
    await destroyUnit(app, gone, goneId)
    expect(await stateOf(gone, goneId)).toBe('destroyed')
    const again = await makeUnit(app, caller, { name: 'again' })
    expect(again.host.id).not.toBe(far.west.id)
    // Its machines are as they were, should somebody look for them.
    expect(far.west.fake.machines().map((machine) => machine.id)).toContain(id)
  }, 120_000)

  it('a host that was given up and joins again is called again, and takes units', async () => {
    const { db } = app
    const instance = (await listHosts(db)).find(({ name }) => name === 'west')?.instance ?? ''
    far.west.served = await serve('west', far.west.fake, far.west.identity, far.west.port)
    const address = `127.0.0.1:${far.west.port}`
    await joinHost(db, { newId: newId('host'), name: 'west', instance, address, at: domain.clock.now() })
    await pass(2 * SECOND)
    await joined()
    expect(app.fleet.find(far.west.id)?.isLost).toBe(false)
    const { caller, id } = await unitsOn('west')
    expect(await run(caller, id)).toBe('here\n')
  }, 60_000)

  it('two hosts whose whole data directories were swapped are not used, and go on once each has its own', async () => {
    const units = { east: await unitsOn('east'), west: await unitsOn('west') }
    const closeAll = async () => {
      for (const name of names) await far[name].served.close()
    }
    const called = () => names.map((name) => far[name].fake.calls.length)
    await closeAll()
    const before = called()
    for (const name of names) {
      const { fake, identity } = far[name === 'east' ? 'west' : 'east']
      far[name].served = await serve(name, fake, identity, far[name].port)
    }
    await pass(20 * SECOND)
    for (const name of names) {
      expect((await listHosts(app.db)).find((host) => host.name === name)?.reason).toContain(
        'the certificate of another host',
      )
      const { caller, id } = units[name]
      await expect(run(caller, id)).rejects.toMatchObject({ details: { reason: 'host_away' } })
      expect(await stateOf(caller, id)).toBe('running')
    }
    expect(called()).toEqual(before)
    await closeAll()
    for (const name of names)
      far[name].served = await serve(name, far[name].fake, far[name].identity, far[name].port)
    await joined()
    for (const { caller, id } of Object.values(units)) expect(await run(caller, id)).toBe('here\n')
  }, 120_000)

  it('a host that another server has called is away with what to do, and this server goes on', async () => {
    const { caller, id } = await unitsOn('east')
    const other = await unitsOn('west')
    const at = { host: '127.0.0.1', port: far.east.port, name: 'east', identity: server }
    await connectFarEngine({ address: at, epoch: 2, onLost: () => {} }).engine.capacity()
    await expect(run(caller, id)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    await pass(4 * SECOND)
    await expect(run(caller, id)).rejects.toMatchObject({ details: { reason: 'host_away' } })
    const east = (await listHosts(app.db)).find(({ name }) => name === 'east')
    expect(east).toMatchObject({ awaySince: expect.any(Date), reason: HOST_TAKEN_OVER })
    expect(await stateOf(caller, id)).toBe('running')
    expect(await run(other.caller, other.id)).toBe('here\n')
  }, 60_000)

  it('the units of a host that was given up are destroyed where the operator says so, and it is removed', async () => {
    const { caller, id } = await unitsOn('west')
    const unitsElsewhere = async () =>
      [...(await countUnitsByHost(app.db))].filter(([hostId]) => hostId !== far.west.id)
    const elsewhere = await unitsElsewhere()
    await far.west.served.close()
    await pass(20 * SECOND)
    await setHostState(app.db, { id: far.west.id, from: ['ready'], to: 'lost', at: domain.clock.now() })
    const decision = { verb: 'remove', name: 'west', here: null, now: domain.clock.now() } as const
    await expect(decideAboutHost(app, decision)).rejects.toThrow('--destroy-units')
    const removed = decideAboutHost(app, { ...decision, destroysUnits: true })
    while (
      (await listUnitsOfHost(app.db, { hostId: far.west.id, now: domain.clock.now(), limit: 1 })).length > 0
    )
      await pass(2 * SECOND)
    expect(await removed).toEqual(['west is removed.'])
    expect(await stateOf(caller, id)).toBe('destroyed')
    expect(await unitsElsewhere()).toEqual(elsewhere)
  }, 120_000)
})
