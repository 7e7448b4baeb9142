// Versions of programs: numbers with dots between them.

/** Whether a version such as 1.26.2 comes before another one; what it does not say is 0. */
export function isOlder(version: string, minimum: string): boolean {
  const [have, need] = [version, minimum].map((text) => text.split('.').map(Number))
  for (const [index, part] of (need ?? []).entries()) {
    const mine = have?.[index] ?? 0
    if (mine !== part) return mine < part
  }
  return false
}
