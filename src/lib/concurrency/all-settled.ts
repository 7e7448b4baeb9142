// Work side by side that may have to be taken back: a failure is told only once nothing is under way any more.

/** As Promise.all, but for that: the first rejection in order, after every one has come to its end. */
export async function allSettled<const T extends readonly unknown[]>(
  work: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const outcomes = await Promise.allSettled(work)
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  return await Promise.all(work)
}
