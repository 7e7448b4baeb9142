// The verdict of the hour (hour/verdict.ts) finds one second too much, and accepts what no observer could have seen
// better.

import { expect, it } from 'vitest'
import type { Interval } from './hour/stopwatch.ts'
import { compare } from './hour/verdict.ts'

/** An interval that was seen to begin within 200 ms, and to end within this time. */
const seen = (ms: number, endsWithinMs = 200, reason: Interval['reason'] = 'user'): Interval => ({
  unitId: 'unit_1',
  kind: 'compute',
  began: { after: 0, by: 200 },
  ended: { after: ms, by: ms + endsWithinMs },
  reason,
})

it.each([
  ['a second and a half too much', [seen(60_000)], [61_500], 1],
  ['a second and a half too little', [seen(60_000)], [58_500], 1],
  ['less than a second more', [seen(60_000)], [60_900], 0],
  ['a charge without an observed interval', [seen(60_000)], [60_000, 5_000], 1],
  ['an interval that was not billed', [seen(60_000), seen(5_000)], [60_000], 2],
  ['an end somewhere in an outage', [seen(60_000, 20_000)], [75_000], 0],
  ['more than the whole outage', [seen(60_000, 20_000)], [80_500], 1],
  ['a machine found dead, up to a heartbeat before', [seen(60_000, 200, 'provider')], [52_000], 0],
  ['a machine found dead, and billed on', [seen(60_000, 200, 'provider')], [61_500], 1],
] as const)('the verdict of the hour counts the faults of %s', (_what, intervals, billed, faults) => {
  expect(compare([...intervals], [...billed]).faults).toHaveLength(faults)
})
