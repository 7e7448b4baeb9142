// Half a minute of the soak test (test/soak), ten minutes in the deep tier: a mixed load while processes are killed at random.
// `npm run soak` runs as long as you like.

import { expect, it } from 'vitest'
import { isDeep, testSeed } from '../support/part-of.ts'
import { soak } from '../soak/soak.ts'

const LASTS_MS = isDeep ? 600_000 : 30_000

it('no data is lost, stuck or left behind while processes are killed at random', {
  timeout: 10 * LASTS_MS,
}, async () => {
  const journal = await soak({
    seed: testSeed,
    forMs: LASTS_MS,
    owners: 4,
    pauseMs: [1000, 5000],
    say: () => {},
  })
  expect(journal.faults).toEqual([])
  // Ensures that there was load and there were kills.
  expect(journal.kills).toBeGreaterThan(1)
  expect(journal.calls).toBeGreaterThan(20)
})
