// A few days of money, in every run of the tests; `npm run simulate -- --month` does a month of a thousand units.

import { expect, it } from 'vitest'
import { simulateMonth } from './month/month.ts'

const few = { units: 40, days: 3, stepsPerDay: 20, actsPerStep: 4, say: () => {} }

it.each([
  { seed: 1, withJumps: false },
  { seed: 2, withJumps: true },
])(
  'units cost the integral of their observed run time, through any crash (seed $seed)',
  { timeout: 300_000 },
  async (options) => {
    const { faults, figures } = await simulateMonth({ ...few, ...options })
    expect(faults).toEqual([])
    expect(figures).toMatchObject({ units: 40, 'nano-cents of difference': '0' })
    expect(figures['server died']).toBeGreaterThan(0)
  },
)
