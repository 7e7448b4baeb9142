// Long matrices. The deep tier runs every case of them. `npm test` runs a part, which is the same every day;
// BERTH_TEST_SEED chooses another one.

import { type IsolationClass, isolationClasses } from '../../src/engine/engine.ts'

/** True in the deep tier, where there is time for everything. */
export const isDeep = process.env.BERTH_TEST_DEEP === 'yes'

/** Chooses the parts, and what a simulation draws. The deep tier has another one each day. */
export const testSeed = Number(process.env.BERTH_TEST_SEED ?? 0)

/**
 * Returns all of the cases in the deep tier, else so many of them: evenly spread over the list, in its order, from a
 * place on that the seed chooses.
 */
export function partOf<T>(cases: readonly T[], count: number, seed = testSeed): T[] {
  if (isDeep || count >= cases.length) return [...cases]
  const first = seed % cases.length
  const drawn = Array.from(
    { length: count },
    (_, index) => first + Math.floor((index * cases.length) / count),
  )
  const indexes = new Set(drawn.map((index) => index % cases.length))
  return cases.filter((_, index) => indexes.has(index))
}

/** What a unit does in any class: the deep tier tries it in each, a usual run in the default one. */
export const usualClasses: readonly IsolationClass[] = isDeep ? isolationClasses : ['gvisor']
