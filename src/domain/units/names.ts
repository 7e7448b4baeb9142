// Names of units on their team's private network (design 3). The resolver answers the full name to the
// whole team, and the bare one within the stack by this search domain.

export function searchDomain(stackName: string): string {
  return `${stackName}.internal`
}

export function internalHost(unitName: string, stackName: string): string {
  return `${unitName}.${searchDomain(stackName)}`
}
