// Long matrices. The deep tier runs every case of them. `npm test` runs a part, and another one each day, so that in time
// every case runs there as well. A part comes back with BERTH_TEST_SEED, which each run prints.

/** True in the deep tier, where there is time for everything. */
export const isDeep = process.env.BERTH_TEST_DEEP === 'yes'

/** Draws the parts. 0 where a test file is run by hand. */
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
