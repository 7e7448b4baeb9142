// The label of a host name that leads to one port of one unit: `<port>-<unit>`, without a publication before. Units of one
// stack have such names, those that were made for clients which expect them (decisions/e2b.md).

/** The stack whose units have these names. */
export const PORT_HOST_STACK = 'sandboxes'

const LABEL = /^([1-9][0-9]{0,4})-([0-9a-f]{32})$/
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

/** Returns null if the label is not of this form. */
export function parsePortHost(label: string): PortHost | null {
  const [, port, hex] = LABEL.exec(label) ?? []
  if (port === undefined || hex === undefined || Number(port) > MAX_PORT) return null
  return { port: Number(port), unitId: `unit_${hex}` }
}
