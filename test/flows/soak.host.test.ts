// Half a minute of the soak (test/soak), ten in the deep tier: a mixed load while whatever there is is killed at random.
// `npm run soak` goes on
// for as long as one likes.

import { expect, it } from 'vitest'
import { isDeep, testSeed } from '../support/part-of.ts'
import { soak } from '../soak/soak.ts'

const LASTS_MS = isDeep ? 600_000 : 30_000

it('nothing is lost, stuck or left behind while everything is killed at random', {
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
  // It was no minute of quiet.
  expect(journal.kills).toBeGreaterThan(1)
  expect(journal.calls).toBeGreaterThan(20)
})
