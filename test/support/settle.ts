// What the service makes good by itself, once nobody is in the way of it.

import { expect } from 'vitest'
import type { App } from '../../src/app.ts'
import { SECOND } from '../../src/lib/clock.ts'
import type { TestDomain } from './domain.ts'
import { findUnsettled } from './invariants.ts'

/** Longer than the reconciler leaves a unit alone after a change. */
const ROUND_MS = 11 * SECOND

/** Rounds of these loops until the engine is as the database wants it; the test's time limit bounds it. */
export async function settle(
  { clock, engine }: Pick<TestDomain, 'clock' | 'engine'>,
  app: App,
  loops: ((app: App) => Promise<void>)[],
): Promise<void> {
  await expect
    .poll(
      async () => {
        clock.advance(ROUND_MS)
        for (const round of loops) await round(app)
        return await findUnsettled(app, engine)
      },
      { interval: 2 },
    )
    .toEqual([])
}
