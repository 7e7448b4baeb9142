// A service with two hosts: its own, and one whose engine is in memory too. What is beside that engine on the other host,
// the test brings.

import { type App, createApp } from '../../src/app.ts'
import type { Unit } from '../../src/contract/unit.ts'
import type { Caller } from '../../src/domain/credentials/caller.ts'
import { recover } from '../../src/domain/units/reconcile.ts'
import { watchHosts } from '../../src/domain/units/watch-hosts.ts'
import { createFleet } from '../../src/engine/fleet.ts'
import { newId } from '../../src/lib/ids.ts'
import { insertHost } from '../../src/store/hosts.ts'
import { createTestDomain, makeUnit, type TestDomain } from './domain.ts'
import { createFakeEngine } from './fake-engine/fake-engine.ts'

export type OwnedUnit = { caller: Caller; unit: Unit }

export type TwoHosts = {
  domain: TestDomain
  app: App
  /** The ids of both hosts. */
  near: string
  far: string
  /** Of a new team, which lies there. */
  makeUnitOn: (hostId: string, name?: string) => Promise<OwnedUnit>
}

/** The other host is named `east`. */
export async function createTwoHosts(env: Record<string, string> = {}): Promise<TwoHosts> {
  const domain = await createTestDomain(env)
  const far = newId('host')
  await insertHost(domain.app.db, { id: far, name: 'east', address: '10.0.0.2:7075', region: null })
  const engine = createFakeEngine({ clock: domain.clock, subnet: 81 })
  const fleet = createFleet(domain.app.fleet.local(), () => ({ engine, cut: () => {} }))
  const app = createApp({ ...domain.app, clock: domain.clock, fleet })
  await recover(app)
  while (app.fleet.find(far)?.awaySince !== null) {
    await watchHosts(app)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    domain,
    app,
    near: fleet.local().id,
    far,
    makeUnitOn: async (hostId, name = 'web') => {
      for (;;) {
        const caller = await domain.makeCaller()
        const unit = await makeUnit(app, caller, { name })
        if (unit.host.id === hostId) return { caller, unit }
      }
    },
  }
}
