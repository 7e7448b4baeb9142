// What a host says of itself is checked before anything there is touched, stored, and its clock reaches no bill.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { type App, createApp } from '../../app.ts'
import { createFleet } from '../../engine/fleet.ts'
import { newId } from '../../lib/ids.ts'
import { VERSION } from '../../lib/version.ts'
import { listGatewayFacts } from '../../store/host-gateways.ts'
import { type HostRecord, insertHost, listHosts } from '../../store/hosts.ts'
import type { Caller } from '../credentials/caller.ts'
import { getUnit } from '../units/get.ts'
import { reconcileMachines, recover } from '../units/reconcile.ts'
import { watchHosts } from '../units/watch-hosts.ts'

const SECOND = 1_000
/** Half of a slow call in this process; an offset is measured by such calls. */
const EXACT_MS = 400
const id = newId('host')
let domain: TestDomain
let app: App
let engine: FakeEngine
let aheadMs = 3 * SECOND
let answering: FakeEngine

/** An engine on another machine, whose clock is ahead. */
function farEngine(instance: string, subnet: number): FakeEngine {
  const now = () => new Date(domain.clock.now().getTime() + aheadMs)
  return createFakeEngine({ clock: { ...domain.clock, now }, subnet, instance })
}

beforeAll(async () => {
  domain = await createTestDomain()
  engine = farEngine('east', 80)
  answering = engine
  await insertHost(domain.app.db, { id, name: 'east', address: 'east', region: null })
  const current = new Proxy(engine, { get: (_, name: keyof FakeEngine) => answering[name] })
  const fleet = createFleet(domain.app.fleet.local(), () => ({ engine: current, cut: () => {} }))
  app = createApp({ ...domain.app, clock: domain.clock, fleet })
  await recover(app)
  await rounds()
})
afterAll(async () => await domain.close())

/** Of the job, each with what it begins. */
async function rounds(count = 12): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    domain.clock.advance(2 * SECOND)
    await watchHosts(app)
    await app.activity.operations.find(`hello ${id}`)?.catch(() => {})
    await reconcileMachines(app)
  }
}

async function east(): Promise<HostRecord | undefined> {
  return (await listHosts(app.db)).find((host) => host.id === id)
}

async function makeFar(): Promise<{ caller: Caller; unitId: string }> {
  for (;;) {
    const caller = await domain.makeCaller()
    const unit = await makeUnit(app, caller, { sleep: 'never' })
    if (unit.host.id === id) return { caller, unitId: unit.id }
  }
}

describe('a host of another machine', () => {
  it('is stored with its data directory, boot, memory and the offset of its clock', async () => {
    expect(await east()).toMatchObject({
      state: 'ready',
      instance: 'east',
      boot: domain.clock.boot,
      memoryMb: 65_536,
      availableMb: 65_536,
    })
    expect(Math.abs(((await east())?.clockOffsetMs ?? 0) - 3 * SECOND)).toBeLessThan(EXACT_MS)
  })

  it('has no part in a bill with its clock: a run ends when it ended by the clock of the server', async () => {
    const { caller, unitId } = await makeFar()
    domain.clock.advance(10 * SECOND)
    const endedAt = domain.clock.now()
    engine.endProcess(unitId)
    await rounds(2)
    const { state, lastExit, costCentsSoFar, startedAt } = await getUnit(app, caller, unitId)
    expect(state).toBe('stopped')
    expect(Math.abs(Date.parse(lastExit?.at ?? '') - endedAt.getTime())).toBeLessThan(EXACT_MS)
    const ranMs = endedAt.getTime() - Date.parse(startedAt ?? '')
    expect(Math.abs((costCentsSoFar / 0.5) * 3_600_000 - ranMs)).toBeLessThan(EXACT_MS)
  })

  it('is away at once with another data directory, of which nothing is removed, and is taken back with its own', async () => {
    const { unitId } = await makeFar()
    const other = farEngine('west', 81)
    const { digest: imageDigest } = await other.pull('berth.local/debian:12')
    const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
    const west = newId('unit')
    await other.create({ id: west, imageDigest, isolation: 'gvisor', size, volume: null, networkGroup: 1 })
    answering = other
    await rounds(3)
    expect(await east()).toMatchObject({
      awaySince: expect.any(Date),
      reason: "it runs the data directory of west, and this host's is east",
    })
    expect(other.disks()).toEqual([west])
    expect(other.machines()).toHaveLength(1)
    answering = engine
    await rounds(3)
    expect(await east()).toMatchObject({ awaySince: null, reason: null })
    expect(engine.machines().map((machine) => machine.id)).toContain(unitId)
  })

  it('is away while its Berth is more than one minor version apart from the server, and says so', async () => {
    const [major = 0, minor = 0] = VERSION.split('.').map(Number)
    const runs = async (version: string) => {
      const capacity = async () => {
        const said = await engine.capacity()
        return { ...said, ...(said.host && { host: { ...said.host, version } }) }
      }
      answering = { ...engine, capacity }
      await rounds(3)
      return await east()
    }
    const far = `${major}.${minor + 2}.0`
    expect((await runs(far))?.reason).toMatch(`it runs Berth ${far} and the server ${VERSION}`)
    expect(await runs(`${major}.${minor + 1}.0`)).toMatchObject({ awaySince: null, reason: null })
    answering = engine
  })

  it('has URLs by what its engine says of its gateway, until that has connected, and by nothing that is none', async () => {
    const says = async (gateway: unknown) => {
      const capacity = async () => {
        const said = await engine.capacity()
        return { ...said, ...(said.host && { host: { ...said.host, gateway } }) }
      }
      answering = { ...engine, capacity }
      await rounds(1)
      return app.gateways.get(id)
    }
    const facts = { url: 'https://east.example.com', tlsPort: 443, mysqlPort: 3306, ports: null }
    expect(await says({ domain: 'east.example.com', ...facts, url: 'https://x@elsewhere' })).toBeUndefined()
    const own = { domain: 'east.example.com', ...facts }
    expect(await says(own)).toEqual(own)
    expect(await says({ ...own, tlsPort: 444 })).toEqual(own)
    expect((await listGatewayFacts(app.db)).get(id)).toEqual(own)
    expect((await east())?.awaySince).toBeNull()
    answering = engine
  })

  it('is away while its clock is more than a minute off', async () => {
    aheadMs = 75 * SECOND
    await rounds(2)
    expect((await east())?.reason).toMatch(/^its clock is 75 s ahead/)
    aheadMs = 0
    await rounds(2)
    expect((await east())?.awaySince).toBeNull()
  })
})
