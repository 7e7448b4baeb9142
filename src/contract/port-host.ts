// Names that lead to one port of one unit, without a publication before. `<port>-<unit>` is the label of a host name; units of
// one stack have such names, those that were made for clients which expect them (decisions/e2b.md). The other name is for any
// unit, and no label of an endpoint has its form: the server says it to the gateway, for callers that it has let in.

/** The stack whose units have these names. */
export const PORT_HOST_STACK = 'sandboxes'

/** What their clients take for a unit that does not run has these words in it. */
export const PORT_HOST_GONE = 'The sandbox was not found'
export const PORT_HOST_PAUSED = `${PORT_HOST_GONE}: it is paused, and a connect resumes it`

const LABEL = /^(port-)?([1-9][0-9]{0,4})-([0-9a-f]{32})$/
const UNIT_ID = /^unit_[0-9a-f]{32}$/
const MAX_PORT = 65_535

export type PortHost = { port: number; unitId: string }

/** How the ports of such a unit are visited; null in a field: as the ports of the others. */
export type PortRules = {
  /** SHA-256, in base64, of the token that a visitor must show; null: anyone may visit. */
  secretHash: string | null
  /** The host that the unit is told was asked for, with `${PORT}` in place of the port; null: the one that was. */
  host: string | null
  /** How long the unit lives once a visit has woken it; null: a visit wakes it never. */
  wakesFor: string | null
}

/** Whose request it is, as the unit is told, and whether it came over TLS. */
export type PortCaller = { address: string; isSecure: boolean }

/** Returns null if the label is not of this form. */
export function parsePortHost(label: string): PortHost | null {
  const named = parsePortName(label)
  return named === null || named.isOfAnyUnit ? null : { port: named.port, unitId: named.unitId }
}

/** The same for both forms. */
export function parsePortName(name: string): (PortHost & { isOfAnyUnit: boolean }) | null {
  const [, prefix, port, hex] = LABEL.exec(name) ?? []
  if (port === undefined || hex === undefined || Number(port) > MAX_PORT) return null
  return { port: Number(port), unitId: `unit_${hex}`, isOfAnyUnit: prefix !== undefined }
}

/** The name of a port of any unit, which the server says alone. Throws for what is no unit's id. */
export function portNameOf({ port, unitId }: PortHost): string {
  if (!UNIT_ID.test(unitId)) throw new TypeError('no unit has this id')
  return `port-${port}-${unitId.slice('unit_'.length)}`
}
