// Finds the label that a visitor asks for, in the Host header, `:authority` or the server name. Pure.

export type RequestedHost =
  | { kind: 'label'; label: string }
  /** A well-formed host that is not a unit's: another domain, an address, or the domain itself. */
  | { kind: 'elsewhere' }
  | { kind: 'malformed' }

/** A host name or IPv4 address with an optional final dot, or an address in brackets; then an optional port. */
const HOST = /^(?:([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*)\.?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{0,5})?$/i

/** The port is ignored, since it is the operator's choice. `domain` is in lower case. */
export function readHost(host: string, domain: string): RequestedHost {
  const match = host.length <= 260 ? HOST.exec(host) : null
  if (!match) return { kind: 'malformed' }
  const name = (match[1] ?? '').toLowerCase()
  const dot = name.indexOf('.')
  if (dot < 0 || name.slice(dot + 1) !== domain) return { kind: 'elsewhere' }
  return { kind: 'label', label: name.slice(0, dot) }
}
