// The label of a host name that leads to one port of one unit: `<port>-<unit>`, without a publication before. Units of one
// stack have such names, those that were made for clients which expect them (decisions/e2b.md).

/** The stack whose units have these names. */
export const PORT_HOST_STACK = 'sandboxes'

const LABEL = /^([1-9][0-9]{0,4})-([0-9a-f]{32})$/
const MAX_PORT = 65_535

export type PortHost = { port: number; unitId: string }

/** Returns null if the label is not of this form. */
export function parsePortHost(label: string): PortHost | null {
  const [, port, hex] = LABEL.exec(label) ?? []
  if (port === undefined || hex === undefined || Number(port) > MAX_PORT) return null
  return { port: Number(port), unitId: `unit_${hex}` }
}
