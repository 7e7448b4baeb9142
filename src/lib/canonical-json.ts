// Returns the same text for equal JSON values: the order of an object's fields does not matter.

export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, item: unknown) => (isObject(item) ? inOrder(item) : item))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function inOrder(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
