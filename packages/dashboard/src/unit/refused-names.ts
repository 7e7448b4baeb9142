// The names that a unit was refused, from the lines of its egress log.

import type { Contract } from '@berth/sdk'

/** `entry`: what to add to its rules. */
export type RefusedName = { entry: string; count: number; at: string }

/** Newest first; without those that have been added or reached meanwhile. `lines`: newest first. */
export function refusedNames(
  lines: readonly Contract.EgressLogLine[],
  allow: readonly string[],
): RefusedName[] {
  const found = new Map<string, RefusedName>()
  const reached = new Set<string>()
  for (const { host, decision, entry, count, at } of lines) {
    if (decision === 'allowed' && host !== null) reached.add(host)
    if (entry === null || allow.includes(entry) || (host !== null && reached.has(host))) continue
    const known = found.get(entry)
    if (known) known.count += count
    else found.set(entry, { entry, count, at })
  }
  return [...found.values()]
}
