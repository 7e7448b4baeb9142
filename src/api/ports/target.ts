// Where a request to a port of a unit goes, by its URL. Pure.

const PATH = /^(\/v1\/units\/([^/?]+)\/ports\/([^/?]+))(\/.*)$/

/** `prefix`: of the path, without what is the unit's own. `target`: path and query for the unit, as they came. */
export type PortTarget = { prefix: string; target: string; params: { id: string; port: string } }

/** Returns null for any other URL. */
export function readPortTarget(url: string): PortTarget | null {
  const [, prefix, id, port, target] = PATH.exec(url) ?? []
  if (prefix === undefined || id === undefined || port === undefined || target === undefined) return null
  return { prefix, target, params: { id, port } }
}
