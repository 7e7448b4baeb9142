// Draws a schedule from a seed and simulates it. A failure is made as short as possible, and reported with the
// command that repeats it.

import fc from 'fast-check'
import type { Bench } from './bench.ts'
import { type Result, simulate } from './simulate.ts'
import { type Schedule, schedules } from './steps.ts'

export type Draw = {
  seed: number
  /** The host’s clock is set at times. */
  withJumps: boolean
  /** Some units are on hosts of other machines. */
  hasHosts?: boolean
  /** The indices of the drawn steps to run; null for all. */
  only: number[] | null
}

/** The number of attempts to make a failure shorter. */
const MAX_ATTEMPTS = 200

/** Returns null when there was no fault, or else a report. */
export async function explore(bench: Bench, draw: Draw): Promise<string | null> {
  const first = await simulate(bench, drawSchedule(draw))
  if (first.faults.length === 0) return null
  const all = draw.only ?? [...drawSchedule(draw).steps.keys()]
  const only = await shorten(all.slice(0, first.stepsTaken), async (steps) => {
    return (await simulate(bench, drawSchedule({ ...draw, only: steps }))).faults.length > 0
  })
  return report({ ...draw, only }, await simulate(bench, drawSchedule({ ...draw, only })))
}

export function drawSchedule({ seed, withJumps, hasHosts = false, only }: Draw): Schedule {
  const [schedule] = fc.sample(fc.noBias(schedules({ withJumps, hasHosts })), { seed, numRuns: 1 })
  if (!schedule) throw new Error('no schedule was drawn')
  const { steps } = schedule
  return only ? { ...schedule, steps: only.flatMap((index) => steps[index] ?? []) } : schedule
}

/** Leaves out parts, larger ones first, as long as the rest still fails. */
async function shorten(steps: number[], fails: (steps: number[]) => Promise<boolean>): Promise<number[]> {
  let kept = steps
  let attempts = 0
  for (let size = Math.ceil(kept.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < kept.length && attempts < MAX_ATTEMPTS; attempts++) {
      const without = [...kept.slice(0, at), ...kept.slice(at + size)]
      if (await fails(without)) kept = without
      else at += size
    }
  }
  return kept
}

function report(draw: Draw, { history, faults }: Result): string {
  const steps = drawSchedule(draw).steps.map((step) => `  ${JSON.stringify(step)}`)
  const jumps = `${draw.withJumps ? ' --jumps' : ''}${draw.hasHosts ? ' --hosts' : ''}`
  return [
    ...steps,
    '',
    ...history,
    '',
    ...faults.map((fault) => `FAULT  ${fault}`),
    `replay: npm run simulate -- --seed ${draw.seed}${jumps} --only ${(draw.only ?? []).join(',')}`,
  ].join('\n')
}
