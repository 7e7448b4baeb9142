// Decides what a call to publish changes for a unit: port, protocol, mode and name. Pure.

import { validation } from '../../contract/errors.ts'
import type { EndpointMode, Expose, Protocol } from '../../contract/endpoint.ts'
import type { UnitSpec } from '../../contract/unit-spec.ts'
import type { EndpointRecord } from '../../store/endpoints.ts'
import type { StoredSpec } from '../../store/unit-record.ts'

export type Choice = {
  port: number
  protocol: Protocol
  mode: EndpointMode
  /** The existing endpoint of this kind: a unit has at most one URL and one TCP endpoint (spec 2.1). */
  current: EndpointRecord | null
  /**
   * Whether a new name is needed: the endpoint is new, its mode changes, or `rotate` was requested. The old name then
   * stops working.
   */
  needsName: boolean
  /** Whether the existing name must lead to another port. */
  moves: boolean
}

type Published = { spec: Pick<StoredSpec, 'ports' | 'databasePorts' | 'expose'>; endpoints: EndpointRecord[] }

/** Throws `validation` for a port that the unit does not declare. */
export function choose(
  { spec, endpoints }: Published,
  { port, protocol: asked, mode: askedMode, rotate }: Expose,
): Choice {
  refuseUndeclared(spec, port)
  const declared = spec.databasePorts.find((database) => database.port === port)?.protocol
  const before = endpoints.find((endpoint) => endpoint.port === port)?.protocol
  const protocol = asked ?? declared ?? before ?? 'http'
  const current = endpoints.find((endpoint) => isUrl(endpoint.protocol) === isUrl(protocol)) ?? null
  const mode = askedMode ?? current?.mode ?? 'private'
  return {
    port,
    protocol,
    mode,
    current,
    needsName: current === null || rotate || current.mode !== mode,
    moves: current !== null && (current.port !== port || current.protocol !== protocol),
  }
}

/** Returns the port to publish when a unit is created (spec 2.4). Throws `validation` if it is not clear which. */
export function defaultPort({ expose, ports }: UnitSpec): number {
  const port = expose ?? (ports.length === 1 ? ports[0] : undefined)
  if (port !== undefined) return port
  const found = ports.length === 0 ? 'no port is declared' : `${ports.length} ports are declared`
  throw validation([
    { path: 'spec.expose', message: `${found}: set the port for the URL, as "expose": 8080` },
  ])
}

export function isUrl(protocol: Protocol): boolean {
  return protocol === 'http'
}

/** A unit that declares no ports may listen on any. */
function refuseUndeclared({ ports, databasePorts, expose }: Published['spec'], port: number): void {
  const declared = [...ports, ...databasePorts.map((database) => database.port)]
  if (declared.length === 0 || declared.includes(port) || expose === port) return
  throw validation([
    { path: 'port', message: `must be a port that the unit declares: ${[...new Set(declared)].join(', ')}` },
  ])
}
