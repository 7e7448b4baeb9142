// Names of units on their team's private network (design 3). The resolver resolves the full name for the whole team,
// and the bare name in the stack through this search domain.

import { randomBytes } from 'node:crypto'
import { limits } from '../../../contract/limits.ts'
import { type AppError, conflict } from '../../../contract/errors.ts'

export function searchDomain(stackName: string): string {
  return `${stackName}.internal`
}

export function internalHost(unitName: string, stackName: string): string {
  return `${unitName}.${searchDomain(stackName)}`
}

/**
 * Returns the wanted name, or the name with a few random letters: counting up would need a query for each existing
 * name.
 */
export async function firstFreeName(
  wanted: string,
  isTaken: (name: string) => Promise<boolean>,
): Promise<string> {
  for (let name = wanted; ; name = withSuffix(wanted, randomBytes(3).toString('hex'))) {
    if (!(await isTaken(name))) return name
  }
}

/** Shortened if it would be too long, and without two dashes in a row. */
export function withSuffix(name: string, suffix: string): string {
  return `${name.slice(0, limits.nameLength - suffix.length - 1).replace(/-$/, '')}-${suffix}`
}

export function nameTaken(name: string): AppError {
  return conflict(`The stack already has a unit named "${name}"; destroy it or choose another name.`)
}
