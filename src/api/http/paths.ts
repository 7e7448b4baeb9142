// Finds the allowed methods of a path, for 405 responses.

type Operation = { method: string; path: string }

/**
 * Returns the methods of all routes that match this path, in the order of the list; an empty list for an unknown
 * path.
 */
export function methodsOfPath(operations: readonly Operation[], path: string): string[] {
  const matching = operations.filter((operation) => matches(operation.path, path))
  return [...new Set(matching.map(({ method }) => method))]
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const parts = path.split('/')
  return (
    wanted.length === parts.length &&
    wanted.every((part, index) => (part.startsWith('{') ? parts[index] !== '' : part === parts[index]))
  )
}
