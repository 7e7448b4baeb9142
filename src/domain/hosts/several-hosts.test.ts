// One server with the engines of several hosts: each call for a unit reaches its host alone, and what one host does not
// say is nothing about the units of another.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { type App, createApp } from '../../app.ts'
import { createFleet, type NewHost } from '../../engine/fleet.ts'
import { newId } from '../../lib/ids.ts'
import { meetLocalHost } from '../../store/hosts.ts'
import type { Caller } from '../credentials/caller.ts'
import { destroyUnit } from '../units/destroy.ts'
import { execInUnit } from '../units/exec.ts'
import { getUnit } from '../units/get.ts'
import { reconcileMachines, recover, recoverHost } from '../units/reconcile.ts'

const MINUTE = 60_000

let domain: TestDomain
let caller: Caller
let near: NewHost
let far: NewHost
let farEngine: FakeEngine
/** The server of both hosts. */
let app: App

function serverOf(local: NewHost, ...others: NewHost[]): App {
  const fleet = createFleet(local, ({ name }) => {
    const other = others.find((each) => each.name === name)
    if (!other) throw new Error(`there is no host ${name}`)
    return { engine: other.engine, cut: () => {} }
  })
  for (const other of others)
    fleet.setAway(fleet.open({ ...other, address: 'elsewhere' }, domain.clock.now()), null)
  return createApp({ ...domain.app, clock: domain.clock, fleet })
}

beforeAll(async () => {
  domain = await createTestDomain()
  near = domain.app.fleet.local()
  await meetLocalHost(domain.app.db, { instance: 'near', name: 'near', newId: newId('host') })
  farEngine = createFakeEngine({ clock: domain.clock, subnet: 98 })
  const { db } = domain.app
  const { id } = await meetLocalHost(db, { instance: 'farr', name: 'far', newId: newId('host') })
  far = { id, name: 'far', region: null, engine: farEngine }
})
beforeEach(async () => {
  app = serverOf(near, far)
  caller = await domain.makeCaller()
  await recover(app)
})
afterEach(async () => {
  farEngine.heal('list')
  await app.db.deleteFrom('units').execute()
  await app.db.deleteFrom('heartbeats').execute()
  await Promise.all([domain.engine.recover([]), farEngine.recover([])])
})
afterAll(async () => await domain.close())

// A server with one host places everything there.
const makeNear = () => makeUnit(serverOf(near), caller, { name: 'near', sleep: 'never' })
const makeFar = () => makeUnit(serverOf(far), caller, { name: 'far', sleep: 'never' })
const idsOf = (engine: FakeEngine) => engine.machines().map(({ id }) => id)
const stateOf = async (id: string) => (await getUnit(app, caller, id)).state
const billedMinutes = async (id: string) => ((await getUnit(app, caller, id)).costCentsSoFar / 0.5) * 60

describe('with two hosts', () => {
  it('a unit says which host it is on, and its machine is there and nowhere else', async () => {
    const [one, two] = [await makeNear(), await makeFar()]
    expect([one.host.id, two.host.id]).toEqual([near.id, far.id])
    expect([idsOf(domain.engine), idsOf(farEngine)]).toEqual([[one.id], [two.id]])
    const { stdout } = await execInUnit(app, caller, two.id, { cmd: ['echo', 'there'], timeoutMs: 1000 })
    expect(stdout).toBe('there\n')
    expect(domain.engine.calls.filter(({ operation }) => operation === 'exec')).toEqual([])
    await destroyUnit(app, caller, two.id)
    expect([idsOf(domain.engine), idsOf(farEngine)]).toEqual([[one.id], []])
  })

  it('a round finds what is lost on each host, and nothing of the other', async () => {
    const [one, two] = [await makeNear(), await makeFar()]
    domain.clock.advance(MINUTE)
    farEngine.loseMachine(two.id)
    await reconcileMachines(app)
    expect([await stateOf(one.id), await stateOf(two.id)]).toEqual(['running', 'sleeping'])
  })

  it('units of a host that does not answer stay as they are, and the other host is looked after', async () => {
    const [one, two] = [await makeNear(), await makeFar()]
    await reconcileMachines(app)
    farEngine.fail('list', 'engine_away', { times: Number.MAX_SAFE_INTEGER })
    domain.clock.advance(10 * MINUTE)
    domain.engine.loseMachine(one.id)
    await reconcileMachines(app)
    expect([await stateOf(one.id), await stateOf(two.id)]).toEqual(['sleeping', 'running'])
  })

  it('a run is billed by the heartbeats of its own host', async () => {
    const [one, two] = [await makeNear(), await makeFar()]
    await reconcileMachines(app)
    farEngine.fail('list', 'engine_away', { times: Number.MAX_SAFE_INTEGER })
    domain.clock.advance(30 * MINUTE)
    await reconcileMachines(app)
    expect(await billedMinutes(one.id)).toBeCloseTo(30, 0)
    expect(await billedMinutes(two.id)).toBeCloseTo(0, 0)
    farEngine.heal('list')
    farEngine.loseMachine(two.id)
    await reconcileMachines(app)
    expect(await stateOf(two.id)).toBe('sleeping')
    expect(await billedMinutes(two.id)).toBeCloseTo(0, 0)
  })

  it('a host that hangs does not hold up the round of the other', async () => {
    const one = await makeNear()
    await makeFar()
    const release = farEngine.hang('list')
    domain.clock.advance(MINUTE)
    domain.engine.loseMachine(one.id)
    const round = reconcileMachines(app)
    await expect.poll(() => stateOf(one.id)).toBe('sleeping')
    release()
    await round
  })

  it('the recovery of a host removes nothing of a unit that is on another one', async () => {
    const two = await makeFar()
    // As after two data directories were swapped.
    const swapped = serverOf({ ...near, engine: farEngine }, { ...far, engine: domain.engine })
    const before = farEngine.calls.length
    await recoverHost(swapped, swapped.fleet.local())
    const calls = farEngine.calls.slice(before).map(({ operation }) => operation)
    expect(calls).toContain('putAside')
    expect(calls).not.toContain('destroy')
    expect(idsOf(farEngine)).toEqual([])
    await recoverHost(app, app.fleet.find(far.id) ?? app.fleet.local())
    expect(idsOf(farEngine)).toEqual([two.id])
  })

  it('a call for a unit of a host that is not there is refused at once, and changes nothing', async () => {
    const two = await makeFar()
    const alone = serverOf(near)
    const call = execInUnit(alone, caller, two.id, { cmd: ['true'], timeoutMs: 1000 })
    await expect(call).rejects.toMatchObject({ status: 503 })
    await recover(alone)
    await reconcileMachines(alone)
    expect(await stateOf(two.id)).toBe('running')
  })
})
