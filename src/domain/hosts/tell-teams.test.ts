// What happens to a host is told to the teams that have units there, and kept for the operator.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDomain, makeUnit, type TestDomain } from '../../../test/support/domain.ts'
import { createFakeEngine, type FakeEngine } from '../../../test/support/fake-engine/fake-engine.ts'
import { type App, createApp } from '../../app.ts'
import { createFleet } from '../../engine/fleet.ts'
import { newId } from '../../lib/ids.ts'
import type { HostState } from '../../store/tables/hosts.ts'
import { insertHost, listHostEvents, setHostAway, setHostState } from '../../store/hosts.ts'
import type { Caller } from '../credentials/caller.ts'
import { followTeam, type NumberedEvent } from '../events/team-events.ts'
import { reconcileMachines, recover } from '../units/reconcile.ts'
import { watchHosts } from '../units/watch-hosts.ts'

const SECOND = 1_000
/** A feed's queries are slow on a busy machine. */
const PATIENT = { timeout: 20_000 }
const id = newId('host')
const left = new AbortController()
let domain: TestDomain
let app: App
let east: FakeEngine

beforeAll(async () => {
  domain = await createTestDomain()
  east = createFakeEngine({ clock: domain.clock, subnet: 81, instance: 'east' })
  await insertHost(domain.app.db, { id, name: 'east', address: 'east', region: null })
  const fleet = createFleet(domain.app.fleet.local(), () => ({ engine: east, cut: () => {} }))
  app = createApp({ ...domain.app, clock: domain.clock, fleet })
  await recover(app)
  await rounds(2)
})
afterAll(async () => {
  left.abort()
  await domain.close()
})

/** Of the job, each with what it begins. */
async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) {
    domain.clock.advance(2 * SECOND)
    await watchHosts(app)
    await app.activity.operations.find(`hello ${id}`)?.catch(() => {})
    await reconcileMachines(app)
  }
}

async function teamOn(hostId: string): Promise<Caller> {
  for (;;) {
    const caller = await domain.makeCaller()
    if ((await makeUnit(app, caller, { sleep: 'never' })).host.id === hostId) return caller
  }
}

/** Everything of hosts that the team is told from now on. */
async function follow(caller: Caller): Promise<NumberedEvent[]> {
  const told: NumberedEvent[] = []
  const events = followTeam(app, caller, null, left.signal)
  await events.next()
  const read = async () => {
    for await (const event of events) if (event.event === 'host' || event.event === 'gone') told.push(event)
  }
  void read()
  return told
}

const move = async (from: HostState, to: HostState) =>
  await setHostState(app.db, { id, from: [from], to, at: domain.clock.now() })

it('a host that is away, back, drained or given up is told to its teams, and to no others', async () => {
  const told = await follow(await teamOn(id))
  const others = await follow(await teamOn(app.fleet.local().id))
  const states = () => {
    // A feed pauses for longer than its query took, by this clock.
    domain.clock.advance(SECOND)
    return told.map(({ data }) => ('state' in data ? data.state : null))
  }
  east.fail('capacity', 'engine_away', { times: Number.MAX_SAFE_INTEGER })
  await rounds(10)
  await expect.poll(states, PATIENT).toEqual(['away'])
  const since = app.fleet.find(id)?.awaySince?.toISOString()
  expect(told[0]?.data).toEqual({ id, state: 'away', since })
  east.heal('capacity')
  await rounds(3)
  await expect.poll(states, PATIENT).toEqual(['away', 'ready'])
  await move('ready', 'draining')
  await rounds(1)
  await expect.poll(states, PATIENT).toEqual(['away', 'ready', 'draining'])
  await move('draining', 'lost')
  await rounds(1)
  await expect.poll(states, PATIENT).toEqual(['away', 'ready', 'draining', 'lost'])
  expect(others).toEqual([])
}, 120_000)

it('the operator finds all of it, with the reasons, in its order', async () => {
  const events = await listHostEvents(app.db, { host: 'east', limit: 100 })
  expect(events.map(({ event }) => event)).toEqual(['ready', 'away', 'back', 'draining', 'lost'])
  expect(events[1]?.reason).toBe('its engine does not answer')
  expect(await listHostEvents(app.db, { host: 'east', limit: 2 })).toEqual(events.slice(-2))
})

it('a host that is cut off again and again fills nothing: the newest five hundred are kept', async () => {
  const host = newId('host')
  await insertHost(app.db, { id: host, name: 'west', address: 'west', region: null })
  await app.db
    .insertInto('host_events')
    .values(
      Array.from({ length: 600 }, () => ({
        host_id: host,
        at: new Date(),
        event: 'away' as const,
        reason: null,
      })),
    )
    .execute()
  await setHostAway(app.db, { id: host, awaySince: new Date(), reason: 'cut off', at: new Date() })
  expect(await listHostEvents(app.db, { host, limit: 1000 })).toHaveLength(500)
})
