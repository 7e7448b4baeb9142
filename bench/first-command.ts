// A common measure for sandboxes: the time from the call that creates a unit to the response of its first command, for a
// hundred units one after the other, and for a hundred units that are created within one second.

import { setTimeout as delay } from 'node:timers/promises'
import { type Actions, percentile } from './figures.ts'

const UNITS = 100
const BEGUN_WITHIN_MS = 1000

type Attempts = { samples: number[]; failures: number }

/** Returns a line for each of the two: p50, p95 and p99 in milliseconds, and how many failed. */
export async function measureFirstCommands(column: string, actions: Actions): Promise<string> {
  await actions.destroy(await actions.create())
  const inARow: Attempts = { samples: [], failures: 0 }
  for (let unit = 0; unit < UNITS; unit += 1) await tryOnce(inARow, actions)
  const together: Attempts = { samples: [], failures: 0 }
  const begun = Array.from({ length: UNITS }, async (_, index) => {
    await delay((index * BEGUN_WITHIN_MS) / UNITS)
    await tryOnce(together, actions)
  })
  await Promise.all(begun)
  return [
    `create to first command answered, ${column}`,
    `  ${UNITS} in a row: ${lineOf(inARow)}`,
    `  ${UNITS} begun within a second: ${lineOf(together)}`,
  ].join('\n')
}

async function tryOnce(attempts: Attempts, { create, exec, destroy }: Actions): Promise<void> {
  const start = performance.now()
  let id: string | null = null
  try {
    id = await create()
    await exec(id)
    attempts.samples.push(performance.now() - start)
  } catch {
    attempts.failures += 1
  } finally {
    if (id !== null) await destroy(id)
  }
}

function lineOf({ samples, failures }: Attempts): string {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(samples, share).toFixed(1))
  return `p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, ${failures} of ${UNITS} failed`
}
