// A create that the engine of its host refuses for want of room is tried on other hosts.

import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { type App, createApp } from '../../app.ts'
import { createFleet } from '../../engine/fleet.ts'
import { newId } from '../../lib/ids.ts'
import { meetLocalHost } from '../../store/hosts.ts'
import { createFromSpecSchema } from '../../contract/create.ts'
import type { Caller } from '../credentials/caller.ts'
import { answerOnce } from '../idempotency/once.ts'
import { createUnits, resumeCreate } from './create.ts'
import { getUnit } from './get.ts'
import { recover, resumeOperations } from './reconcile.ts'
import { listUnits } from './list.ts'

type Host = { id: string; engine: FakeEngine }

let domain: TestDomain
let app: App
let caller: Caller
let hosts: Host[]

beforeEach(async () => {
  await domain?.close()
  domain = await createTestDomain()
  const local = domain.app.fleet.local()
  await meetLocalHost(domain.app.db, { instance: 'one', name: 'one', newId: newId('host') })
  hosts = [{ id: local.id, engine: domain.engine }]
  for (const name of ['two', 'three', 'four']) {
    const engine = createFakeEngine({ clock: domain.clock, subnet: 90 + hosts.length })
    const { id } = await meetLocalHost(domain.app.db, { instance: name, name, newId: newId('host') })
    hosts.push({ id, engine })
  }
  app = serverOfAll()
  caller = await domain.makeCaller()
  await recover(app)
}, 60_000)
afterAll(async () => await domain.close())

function serverOfAll(): App {
  const local = domain.app.fleet.local()
  const engineOf = (id: string) => hosts.find((host) => host.id === id)?.engine ?? domain.engine
  const fleet = createFleet(local, ({ name }) => ({ engine: engineOf(name), cut: () => {} }))
  for (const { id } of hosts.slice(1))
    fleet.setAway(fleet.open({ id, name: id, region: null, address: 'far' }, domain.clock.now()), null)
  return createApp({ ...domain.app, clock: domain.clock, fleet })
}

async function keepHosts(count: number): Promise<void> {
  hosts = hosts.slice(0, count)
  app = serverOfAll()
  await recover(app)
}

/** The host at the front has the most memory free, so it is tried first. */
function preferInOrder(): void {
  for (const [index, { engine }] of hosts.entries())
    engine.setCapacity({ availableMemoryMb: 60_000 - 10_000 * index })
}
const refuse = (operation: 'pull' | 'create', by: Host[]) => {
  for (const { engine } of by) engine.fail(operation, 'host_full', { times: Number.MAX_SAFE_INTEGER })
}
const triesOf = (operation: string) =>
  hosts.map(({ engine }) => engine.calls.filter((call) => call.operation === operation).length)
const machines = () => hosts.flatMap(({ id, engine }) => engine.disks().map((unit) => ({ host: id, unit })))
const third = () => hosts[2] ?? { id: '', engine: domain.engine }

describe('a create that hosts refuse because they are full', () => {
  it.each(['pull', 'create'] as const)(
    'at %s is tried elsewhere with the same unit, and leaves nothing behind',
    async (operation) => {
      await keepHosts(3)
      preferInOrder()
      refuse(operation, hosts.slice(0, 2))
      const results: string[] = []
      app.observer = { ...app.observer, operationEnded: ({ result }) => void results.push(result) }
      const unit = await makeUnit(app, caller)
      expect(unit).toMatchObject({ state: 'running', host: { id: third().id } })
      expect(results).toEqual(['success'])
      expect(machines()).toEqual([{ host: third().id, unit: unit.id }])
      expect(triesOf(operation)).toEqual([1, 1, 1])
      const { units } = await listUnits(app, caller, { all: false, limit: 10 })
      expect(units.map(({ id }) => id)).toEqual([unit.id])
    },
  )

  it('answers with the URL of the host that has the unit, also when the call is repeated meanwhile', async () => {
    await keepHosts(3)
    preferInOrder()
    refuse('create', hosts.slice(0, 2))
    const url = 'https://three.example.com'
    const facts = { domain: 'three.example.com', url, tlsPort: 443, mysqlPort: 3306, ports: null }
    app.gateways.set(third().id, facts)
    const spec = { name: 'web', image: 'berth.local/debian:12', ports: [8000], expose: 8000 }
    const body = createFromSpecSchema.parse({ spec, expose: 'public' })
    let kept: unknown
    const keep = async (_db: unknown, value: unknown) => void (kept = JSON.parse(JSON.stringify(value)))
    const made = await createUnits(app, caller, body, {
      claim: async () => {},
      keep,
      release: async () => {},
    })
    expect(made.outputs['URL']).toMatch(/^https:\/\/[^.]+\.three\.example\.com$/)
    expect(kept).not.toMatchObject({ outputs: { URL: made.outputs['URL'] } })
    expect((await resumeCreate(app, caller, body, kept)).outputs).toEqual(made.outputs)
  })

  it('is tried three times, and then answers 503 with the reason and the time to wait', async () => {
    refuse('create', hosts)
    const refused: unknown = await makeUnit(app, caller).catch((error: unknown) => error)
    const says = /^3 hosts were tried, and none has room for it\. .*host_full.* Send it again in 10 s\.$/
    expect(refused).toMatchObject({ status: 503, retryAfterS: 10, message: expect.stringMatching(says) })
    expect(triesOf('create').filter((tries) => tries === 1)).toHaveLength(3)
    const { units } = await listUnits(app, caller, { all: false, limit: 10 })
    expect(units).toMatchObject([{ state: 'error', error: expect.stringMatching(says) }])
    expect(refused).toMatchObject({ details: { unitId: units[0]?.id } })
    expect(machines()).toEqual([])
  })

  it('makes the unit when it is sent again with the same key once there is room', async () => {
    const body = createFromSpecSchema.parse({ spec: { name: 'again', image: 'berth.local/debian:12' } })
    const name = { teamId: caller.teamId, route: 'POST /v1/units', key: 'again' }
    const send = async () =>
      await answerOnce(
        app,
        { name, request: { meant: JSON.stringify(body), sent: JSON.stringify(body) } },
        {
          make: async (once) => await createUnits(app, caller, body, once),
          resume: async (kept) => await resumeCreate(app, caller, body, kept),
        },
      )
    refuse('create', hosts)
    await expect(send()).rejects.toMatchObject({ status: 503 })
    for (const { engine } of hosts) engine.heal('create')
    domain.clock.advance(10_000)
    const made = await send()
    expect(made).toMatchObject({ kind: 'done', replayed: false, value: { units: [{ state: 'running' }] } })
    expect(await send()).toMatchObject({ kind: 'done', replayed: true })
    expect(machines()).toHaveLength(1)
  })

  it('stays on the host of its team, because the network of a team reaches no further', async () => {
    const { host } = await makeUnit(app, caller, { name: 'one', sleep: 'never' })
    refuse(
      'create',
      hosts.filter(({ id }) => id === host.id),
    )
    const before = triesOf('create').reduce((sum, count) => sum + count, 0)
    await expect(makeUnit(app, caller, { name: 'two' })).rejects.toMatchObject({
      status: 503,
      message: expect.stringMatching(/^The host that it can be on has no room for it\./),
    })
    expect(triesOf('create').reduce((sum, count) => sum + count, 0)).toBe(before + 1)
  })

  it('stays where it is if the refusing host cannot say that nothing is left there', async () => {
    await keepHosts(2)
    preferInOrder()
    refuse('create', hosts.slice(0, 1))
    domain.engine.fail('destroy', 'internal')
    await expect(makeUnit(app, caller)).rejects.toMatchObject({ status: 503 })
    expect(triesOf('create')).toEqual([1, 0])
  })

  it('is made on a host that does not say in time what it has, if there is no other', async () => {
    await keepHosts(2)
    const [first, second] = hosts
    const releases = hosts.map(({ engine }) => engine.hang('capacity'))
    first?.engine.heal('capacity')
    first?.engine.setCapacity({ availableMemoryMb: 10 })
    const unit = await makeUnit(app, caller)
    expect(unit).toMatchObject({ state: 'running', host: { id: second?.id } })
    for (const release of releases) release()
  })

  it('goes on at the other host after the server died there', async () => {
    await keepHosts(2)
    preferInOrder()
    refuse('create', hosts.slice(0, 1))
    const [, second] = hosts
    const release = second?.engine.hang('create')
    makeUnit(app, caller).catch(() => {})
    await expect.poll(() => triesOf('create'), { timeout: 20_000 }).toEqual([1, 1])
    second?.engine.heal('create')
    const next = serverOfAll()
    await recover(next)
    await resumeOperations(next)
    const [unit] = (await listUnits(next, caller, { all: false, limit: 10 })).units
    await expect
      .poll(async () => (await getUnit(next, caller, unit?.id ?? '')).state, { timeout: 20_000 })
      .toBe('running')
    expect(machines()).toEqual([{ host: second?.id, unit: unit?.id }])
    release?.()
  })
})
