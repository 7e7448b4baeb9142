// For concurrent work that may have to be undone: a failure is reported only once all of it has ended.

/** Like Promise.all, but waits for all promises, then throws the first rejection in the order of the list. */
export async function allSettled<const T extends readonly unknown[]>(
  work: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const outcomes = await Promise.allSettled(work)
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  return await Promise.all(work)
}
