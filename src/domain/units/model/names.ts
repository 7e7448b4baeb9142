// Names of units on their team's private network (design 3). The resolver answers the full name to the
// whole team, and the bare one within the stack by this search domain.

import { randomBytes } from 'node:crypto'
import { limits } from '../../../contract/limits.ts'

export function searchDomain(stackName: string): string {
  return `${stackName}.internal`
}

export function internalHost(unitName: string, stackName: string): string {
  return `${unitName}.${searchDomain(stackName)}`
}

/** The one wanted, or with a few random letters: counting up would ask once for every name of that kind. */
export async function firstFreeName(
  wanted: string,
  isTaken: (name: string) => Promise<boolean>,
): Promise<string> {
  for (let name = wanted; ; name = withSuffix(wanted, randomBytes(3).toString('hex'))) {
    if (!(await isTaken(name))) return name
  }
}

/** Cut where it would be too long, and so that no two dashes meet. */
export function withSuffix(name: string, suffix: string): string {
  return `${name.slice(0, limits.nameLength - suffix.length - 1).replace(/-$/, '')}-${suffix}`
}
