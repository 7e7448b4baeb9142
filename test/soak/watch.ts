// Watches from outside, as a dashboard would: no unit may be in a transitional state for long.

import { setTimeout as delay } from 'node:timers/promises'
import { isTransitional } from '../../src/contract/states.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { send } from '../support/patient-client.ts'
import type { World } from './world.ts'

const LOOK_EVERY_MS = 2000
/** An operation that is killed takes a restart, a run of the reconciler, and a process that is slow to end. */
const MAX_PASSING_MS = 90_000

/** Runs until the soak is over. */
export async function watchStates(world: World): Promise<void> {
  const since = new Map<string, number>()
  while (!world.over.aborted) {
    await delay(LOOK_EVERY_MS)
    const listed = await send<{ units: Unit[] }>(world.berth, { method: 'GET', path: '/v1/units' })
    if (listed.kind !== 'answered' || listed.status !== 200) continue
    const passing = listed.body.units.filter(({ state }) => isTransitional(state))
    const keys = new Set(passing.map(({ id, state }) => `${id} is ${state}`))
    for (const known of since.keys()) if (!keys.has(known)) since.delete(known)
    for (const key of keys) {
      const first = since.get(key) ?? Date.now()
      since.set(key, first)
      if (Date.now() - first <= MAX_PASSING_MS) continue
      world.journal.fault(`${key} for more than ${MAX_PASSING_MS / 1000} s`)
      since.set(key, Number.POSITIVE_INFINITY)
    }
  }
}
