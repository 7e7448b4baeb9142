// Units published at a TCP endpoint or a URL, on the real product: put to sleep in both tiers, and woken by clients.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Exposed, Protocol } from '../../src/contract/endpoint.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { runDirOf } from '../../src/supervisor/instance.ts'
import { type Berth, eventually } from './berth.ts'
import { createUnit, type Service } from './berth-units.ts'
import { withDatabase } from './host-invariants.ts'

export type Published = { unit: Unit; url: string; host: string; port: number }

/** For `BERTH_FROZEN_FOR`: long enough to come back to a frozen unit, short enough to wait for a stopped one. */
export const FROZEN_FOR_S = 4

export async function publish(
  berth: Service,
  spec: Record<string, unknown>,
  at: { port: number; protocol: Protocol; mode?: 'public' | 'private' },
): Promise<Published> {
  const unit = await createUnit(berth, spec)
  const answer = await berth.call<Exposed>('POST', `/v1/units/${unit.id}/expose`, at)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const { url } = answer.body
  // A scheme that URL knows, so that its parts are told apart.
  const { hostname, port } = new URL(url.replace(/^[a-z+]+:/, 'https:'))
  return { unit, url, host: hostname, port: Number(port) }
}

export const unitOf = async (berth: Service, { id }: Unit) =>
  (await berth.call<Unit>('GET', `/v1/units/${id}`)).body

export async function freeze(berth: Service, unit: Unit): Promise<void> {
  // What was sent a moment before is told a moment later, and would wake it.
  await delay(600)
  await eventually(async () => {
    const answer = await berth.call('POST', `/v1/units/${unit.id}/sleep`, { sleep: '10m', now: true })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  })
  expect((await unitOf(berth, unit)).state).toBe('sleeping')
}

/** Asleep for long enough to be stopped: nothing is left but their disks. */
export async function hibernate(berth: Berth, units: Unit[]): Promise<void> {
  await Promise.all(units.map((unit) => freeze(berth, unit)))
  await untilStopped(berth, units)
}

/** A caller sees no difference between a unit that is frozen and one that has been stopped in its sleep. */
export async function untilStopped(berth: Berth, units: Unit[]): Promise<void> {
  const ids = units.map(({ id }) => id)
  const instance = await berth.instance()
  await expect
    .poll(async () =>
      withDatabase(instance, (db) =>
        db.selectFrom('units').select(['state', 'frozen']).where('id', 'in', ids).execute(),
      ),
    )
    .toEqual(ids.map(() => ({ state: 'sleeping', frozen: false })))
  // The row comes first: until its run has ended, the unit's kernel may still accept a connection.
  const runs = join(runDirOf(instance), 'runs')
  const left = async () => (await readdir(runs)).filter((name) => ids.some((id) => name.startsWith(`${id}-`)))
  await expect.poll(left).toEqual([])
}

/** What a client is answered by a unit that sleeps, which it wakes, from a freeze in the run that it was in. */
export async function waking<T>(
  berth: Service,
  unit: Unit,
  tier: 'frozen' | 'cold',
  client: () => Promise<T>,
): Promise<T> {
  const before = await unitOf(berth, unit)
  expect(before.state).toBe('sleeping')
  const answer = await client()
  // Who wakes a frozen one is answered before its row is written (decisions/wake.md).
  await expect.poll(async () => (await unitOf(berth, unit)).state).toBe('running')
  const after = await unitOf(berth, unit)
  expect(after.startedAt === before.startedAt, 'whether it is the run from before').toBe(tier === 'frozen')
  return answer
}
