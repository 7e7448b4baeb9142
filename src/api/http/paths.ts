// Finds the allowed methods of a path, for 405 responses.

type Operation = { method: string; path: string }

/** The methods of whatever this path could mean, in the order of the list; none for an unknown path. */
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
