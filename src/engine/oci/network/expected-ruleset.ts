// What the kernel lists once rules of ours are loaded: what later listings are compared with, to find out whether
// anybody disturbed them.

/**
 * Null when anybody else changed any rules between the load and the listing, for then it may be theirs that were listed,
 * and would be taken for ours for ever. The caller, who finds null equal to no listing, loads again at its next look.
 * `load` is one transaction.
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
