// Injects a fault at every effect of the engine (reliability F2, F3): it fails before or after it happens, or happens
// twice. Each time the operation must be undone or done, the next attempt must succeed, and the host must match what the
// engine lists. `npm test` covers a part of the effects.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EngineFailpoint } from '../../src/engine/oci/failpoints.ts'
import { FailpointError } from '../../src/lib/failpoints.ts'
import { reachedFailpoints } from '../support/criu.ts'
import { createOneFault } from '../support/failpoints.ts'
import { partOf } from '../support/part-of.ts'
import { after, createScenario, stepOf } from './failpoint-steps.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'

/** Effects that differ between gVisor and runc. */
const throughRuntime = [
  'engine.start.monitor',
  'engine.start.go',
  'engine.stop.signal',
  'engine.cleanup.runtime',
]

describe.each(['runc', 'gvisor'] as const)('with %s', (isolation) => {
  const oneFault = createOneFault()
  let host: HostEngine
  const suite = createHostSuite(isolation, () => host)
  beforeAll(async () => {
    host = await openHostEngine({ isolation, failpoints: oneFault.failpoints })
    await suite.open()
  })
  afterAll(async () => await suite.close())

  const names = reachedFailpoints.filter((name) => isolation === 'runc' || throughRuntime.includes(name))

  it.each(partOf(names, 10))(
    '%s can fail before or after its effect or happen twice, and the next attempt succeeds',
    async (name: EngineFailpoint) => {
      const step = stepOf(name)
      const scenario = createScenario(host.engine, suite.specOf({ volume: { mount: '/data', gb: 1 } }), name)
      const faults = [
        { place: `${name}.before`, fault: 'error' },
        { place: `${name}.after`, fault: 'error' },
        { place: name, fault: 'twice' },
      ] as const
      for (const fault of faults) {
        await scenario.before(step)
        oneFault.wish(fault.place, fault.fault)
        const error = await scenario.take(step).then(
          () => null,
          (thrown: unknown) => thrown,
        )
        expect([fault, oneFault.wished()]).toEqual([fault, null])
        if (fault.fault === 'twice') expect(error).toBeNull()
        if (error) expect(error).toBeInstanceOf(FailpointError)
        // A half-destroyed machine is allowed until it is destroyed again.
        if (error === null || step !== 'destroy') await host.expectAsListed()
        if (error) await scenario.take(step)
        expect([fault, await scenario.says(step)]).toEqual([fault, after[step]])
      }
      await host.engine().destroy(scenario.id)
      expect(await scenario.status()).toBeUndefined()
      await host.expectAsListed()
    },
  )
})
