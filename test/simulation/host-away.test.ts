// Each step of create, fork, sleep, wake and destroy is cut once with the unit's host away, which then comes back in the
// same boot or in another one. `npm run test:deep` cuts at every step, `npm test` at some of them, others each day.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MINUTE, SECOND } from '../../src/lib/clock.ts'
import { isDeep, testSeed } from '../support/part-of.ts'
import { type Bench, createBench } from './bench.ts'
import type { Wish } from './calls.ts'
import { simulate } from './simulate.ts'
import type { Step } from './steps.ts'

const STRIDE = isDeep ? 1 : 32
/** More than an operation has steps. */
const MAX_STEPS = 200

let bench: Bench
beforeAll(async () => {
  bench = await createBench()
})
afterAll(async () => await bench.close())

const create = (name: string): Wish => ({
  call: 'create',
  name,
  stack: 'one',
  spec: 'plain',
  sleep: 'never',
  wait: true,
})
const UNIT = 0
const HOSTS = [0, 1]
/** A slow answer is one for several hops, and a host that is slow to join has no unit. */
const hops = (count: number): Step[] =>
  Array.from({ length: count }, () => ({ act: { passMs: SECOND }, gates: 60 }))
const before: Step[] = [...hops(30), { act: { by: 2, wish: create('web') }, gates: 60 }, ...hops(60)]
const sleep: Wish = { call: 'sleep', unit: UNIT, sleep: 'never', stack: false, now: true }
const asleep: Step[] = [{ act: { by: 2, wish: sleep }, gates: 60 }, ...hops(60)]

const operations: { what: string; ready: Step[]; wish: Wish }[] = [
  { what: 'create', ready: before, wish: create('db') },
  {
    what: 'fork',
    ready: before,
    wish: { call: 'fork', unit: UNIT, name: 'copy', stack: 'one', wait: true },
  },
  { what: 'sleep', ready: before, wish: sleep },
  { what: 'wake', ready: [...before, ...asleep], wish: { call: 'exec', unit: UNIT, forS: 0 } },
  { what: 'destroy', ready: before, wish: { call: 'destroy', unit: UNIT } },
]
const troubles = [
  { trouble: 'a host is cut off', in: 'the same boot' },
  { trouble: 'a host boots', in: 'another boot' },
] as const

describe.each(operations)('$what of a unit on another host', ({ ready, wish }) => {
  it.each(troubles)(
    `is whole after $trouble at any step of it, and comes back in $in`,
    async ({ trouble }) => {
      const away: Step[] = [
        ...HOSTS.map((host): Step => ({ act: { trouble, host, forMs: 40 * SECOND }, gates: 0 })),
        { act: { passMs: MINUTE }, gates: 60 },
      ]
      let cuts = 0
      for (let gates = testSeed % STRIDE; gates < MAX_STEPS; gates += STRIDE) {
        const steps = [...ready, { act: { by: 2, wish }, gates }, ...away]
        const { faults, history } = await simulate(bench, {
          seed: gates,
          isCalm: false,
          hasHosts: true,
          isDrained: true,
          steps,
        })
        expect({ gates, faults, history: faults.length > 0 ? history : [] }).toEqual({
          gates,
          faults: [],
          history: [],
        })
        const cutAt = history.findIndex((line) => line.includes(`! ${trouble}`))
        const call = ready.filter(({ act }) => 'wish' in act).length + 1
        if (history.slice(0, cutAt).some((line) => line.includes(`call ${call} (${wish.call}) is answered`)))
          break
        const isThere = history.slice(0, cutAt).some((line) => / to start unit0 on (?:east|west)$/.test(line))
        expect({ gates, isThere, history: isThere ? [] : history }).toEqual({
          gates,
          isThere: true,
          history: [],
        })
        cuts += 1
      }
      if (isDeep) expect(cuts).toBeGreaterThan(3)
    },
    isDeep ? 900_000 : 240_000,
  )
})
