// An engine of this host that makes machines ahead, for tests about them (decisions/creates.md).

import { afterAll, beforeAll, expect, vi } from 'vitest'
import type { IsolationClass, MachineRef, MachineSpec, RunSpec } from '../../src/engine/engine.ts'
import { deriveImage } from '../support/derived-images.ts'
import { IMAGE, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { configuredImage, createSuite } from './suite.ts'

const configured = { reference: 'berth.local/configured:1', config: configuredImage }

/** What a start was by the engine's own counts. */
export const hit = '1 hit, 0 miss'
export const miss = '0 hit, 1 miss'

/** How long no other machine must have come for all to be there. */
const SETTLED_MS = 2500

export function readySuite(isolation: IsolationClass) {
  const readyMachines = { perKind: 1, memoryReserveMb: 0 }
  let host: Awaited<ReturnType<typeof openHostEngine>>
  const suite = createSuite(
    async () => ({
      engine: host.engine(),
      configuredImage: await deriveImage(host.engine(), [IMAGES_DIR, IMAGE], configured),
      reopen: host.reopen,
      close: async () => await host.close(),
    }),
    { isolation, image: IMAGE, imageEnv: { name: 'LANG', value: 'C.UTF-8' } },
  )
  beforeAll(async () => {
    host = await openHostEngine({ isolation, readyMachines })
    await suite.open()
  })
  afterAll(async () => await suite.close())

  const stats = async () => {
    const { readyMachines: found } = await host.engine().capacity()
    return found ?? { waiting: 0, hits: 0, misses: 0, memoryMb: 0 }
  }

  return {
    suite,
    stats,
    host: () => host,

    /** Once there is one of each kind in use. */
    whenReady: async (): Promise<void> => {
      let seen = { waiting: 0, since: performance.now() }
      await vi.waitFor(
        async () => {
          const { waiting } = await stats()
          if (waiting !== seen.waiting) seen = { waiting, since: performance.now() }
          expect(waiting).toBeGreaterThan(0)
          expect(performance.now() - seen.since).toBeGreaterThan(SETTLED_MS)
        },
        { timeout: 30_000, interval: 50 },
      )
    },

    /** Starts a machine of the kind, and says whether it was made ahead. */
    start: async (
      run: Partial<RunSpec> = {},
      spec: Partial<MachineSpec> = {},
    ): Promise<{ ref: MachineRef; outcome: string }> => {
      const before = await stats()
      const ref = await suite.running(run, spec)
      const after = await stats()
      return { ref, outcome: `${after.hits - before.hits} hit, ${after.misses - before.misses} miss` }
    },
  }
}
