// Operations that meet each other in any state (reliability F14): as many schedules as a night has time for, different ones
// each day; `npm run simulate` runs more. A failure prints the command that repeats it.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Forked, ForkSpec } from '../../src/engine/engine.ts'
import type { FakeEngine } from '../support/fake-engine/fake-engine.ts'
import { type Bench, createBench } from './bench.ts'
import { testSeed } from '../support/part-of.ts'
import { drawSchedule, explore } from './explore.ts'
import { simulate } from './simulate.ts'

const SCHEDULES = 3000
const SCHEDULES_WITH_JUMPS = 600
const SCHEDULES_WITH_HOSTS = 1000
/** A failure names the seed of its schedule, so seeds need not begin at one. */
const FIRST_SEED = (testSeed === 0 ? 20_785 : testSeed) % 1_000_000
/** Several side by side, so that both Postgres and this process have work. */
const BENCHES = 3

let benches: Bench[]
beforeAll(async () => {
  benches = await Promise.all(Array.from({ length: BENCHES }, () => createBench()))
})
afterAll(async () => await Promise.all(benches.map((bench) => bench.close())))

/** Returns the first failure among this many seeds. */
async function findFailure(
  count: number,
  { withJumps = false, hasHosts = false } = {},
): Promise<string | null> {
  let seed = FIRST_SEED
  let failure: string | null = null
  const work = async (bench: Bench) => {
    while (seed < FIRST_SEED + count && failure === null) {
      seed += 1
      failure = (await explore(bench, { seed, withJumps, hasHosts, only: null })) ?? failure
    }
  }
  await Promise.all(benches.map(work))
  return failure
}

describe('with random calls and faults', () => {
  it(`every promise is kept in ${SCHEDULES} schedules`, { timeout: 600_000 }, async () =>
    expect(await findFailure(SCHEDULES)).toBeNull(),
  )

  it(
    `every promise that needs no wall clock is kept in ${SCHEDULES_WITH_JUMPS} schedules with clock jumps`,
    { timeout: 300_000 },
    async () => expect(await findFailure(SCHEDULES_WITH_JUMPS, { withJumps: true })).toBeNull(),
  )

  it(
    `every promise is kept in ${SCHEDULES_WITH_HOSTS} schedules with hosts that go away, boot, are swapped or given up`,
    { timeout: 3_600_000 },
    async () => expect(await findFailure(SCHEDULES_WITH_HOSTS, { hasHosts: true })).toBeNull(),
  )
})

describe('a schedule', () => {
  it.each([1, 2, 3])(
    'with the seed %i has the same trace each time',
    async (seed) => {
      const schedule = drawSchedule({ seed, withJumps: true, only: null })
      const traces = await Promise.all(
        benches.map(async (bench) => (await simulate(bench, schedule)).trace.join('\n')),
      )
      expect(new Set(traces).size).toBe(1)
      expect(traces[0]?.length).toBeGreaterThan(1_000)
    },
    60_000,
  )
})

describe('the simulation', () => {
  const spoils: { what: string; spoil: (engine: FakeEngine) => void }[] = [
    {
      what: 'loses what was written',
      spoil: (engine) => {
        engine.writeFile = async (_ref, _path, { length }) => ({ bytes: length, sha256: '', verified: true })
      },
    },
    {
      what: 'keeps what was destroyed',
      spoil: (engine) => {
        engine.destroy = async () => {}
      },
    },
    {
      what: 'copies no disk',
      spoil: (engine) => {
        const empty = async ({ id, networkGroup }: ForkSpec): Promise<Forked> => {
          const { digest: imageDigest } = await engine.pull('berth.local/debian:12')
          const size = { cpus: 1, memoryMb: 256, pids: 64, diskGb: 1 }
          const spec = { id, imageDigest, isolation: 'gvisor', size, volume: null, networkGroup } as const
          return { status: await engine.create(spec), copied: 'disk' }
        }
        engine.fork = async (forks) => await Promise.all(forks.map(empty))
      },
    },
    {
      what: 'never answers a stop',
      spoil: (engine) => {
        engine.stop = () => new Promise(() => {})
      },
    },
  ]
  it.each(spoils)(
    'finds an engine that $what',
    async ({ spoil }) => {
      const [bench] = benches
      if (!bench) throw new Error('no bench')
      let seed = 0
      let faults: string[] = []
      while (faults.length === 0) {
        seed += 1
        const schedule = drawSchedule({ seed, withJumps: false, only: null })
        faults = (await simulate(bench, schedule, spoil)).faults
      }
      expect(faults.join()).not.toBe('')
    },
    180_000,
  )
})
