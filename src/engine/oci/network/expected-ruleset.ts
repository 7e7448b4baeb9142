// The kernel's listing of our rules right after they were loaded: later listings are compared with it to detect
// changes by others.

/**
 * Returns null if another program changed any rules between the load and the listing, which could then include its
 * changes. Null differs from every listing, so the caller loads again at its next check. `load` is one transaction.
 */
export async function loadRuleset(
  rulesGeneration: () => number,
  load: () => Promise<void>,
  list: () => Promise<string | null>,
): Promise<{ generation: number; rules: string } | null> {
  const generation = rulesGeneration() + 1
  await load()
  const rules = await list()
  return rules !== null && rulesGeneration() === generation ? { generation, rules } : null
}
