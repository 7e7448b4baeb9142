// Host names of clients that were written for another interface (decisions/e2b.md): `api` is its control plane,
// `<port>-<sandbox>` a port of a sandbox. One port is not the sandbox's own: what is asked there the server answers. A
// visit wakes a sandbox that is paused only where its rules say so (contract/port-host.ts).

import { createHash, timingSafeEqual } from 'node:crypto'
import { connect } from 'node:net'
import { parsePortHost, PORT_HOST_GONE, PORT_HOST_PAUSED, type PortHost } from '../../contract/port-host.ts'
import {
  connectWithRetry,
  type Closed,
  type Door,
  type GatewayContext,
  type Target,
} from '../sessions/connect-to-unit.ts'
import type { Session } from '../sessions/open-sessions.ts'
import type { Outcome } from '../sessions/outcomes.ts'
import type { Route } from '../route.ts'
import type { Exchange } from './exchange.ts'
import { doorOf, passToHost } from './pass-to-host.ts'
import { proxyRequestOver } from './proxy-request.ts'
import type { ProxyResult } from './proxy-result.ts'

const CONTROL_LABEL = 'api'
const CONTROL_PREFIX = '/e2b'
const SANDBOX_PREFIX = '/e2b/sandbox'
/** The ports at which clients expect the services of a sandbox, and its code interpreter. */
const servicePorts = [49_983, 49_999]
const ID_HEADER = 'e2b-sandbox-id'
const PORT_HEADER = 'e2b-sandbox-port'
/** What a client asked for, for the URLs that the server answers with. */
const HOST_HEADER = 'e2b-host'
/** Of the visitors of a sandbox that not everyone may visit. */
const TOKEN_HEADER = 'e2b-traffic-access-token'
/** Clients ask again soon: they poll for a server that is about to listen. */
const REFUSING_MS = { running: 500, woken: 5000 }

/** Clients take this status for the end of a sandbox. */
const GONE = 502
const UNAVAILABLE = 503
const FORBIDDEN = 403

export type DoorHost = { kind: 'control' } | ({ kind: 'port'; label: string } & PortHost)

/** Returns null for the label of an ordinary endpoint. */
export function readDoorHost(label: string): DoorHost | null {
  if (label === CONTROL_LABEL) return { kind: 'control' }
  const host = parsePortHost(label)
  return host === null ? null : { kind: 'port', label, ...host }
}

type Pass = (exchange: Exchange, run: Route) => Promise<ProxyResult>

export async function serveDoorHost(
  context: GatewayContext,
  exchange: Exchange,
  session: Session,
  host: DoorHost,
  pass: Pass,
): Promise<Outcome | Closed> {
  const { door } = context
  if (door === undefined) return { kind: 'unknown' }
  if (host.kind === 'control') {
    const named = [HOST_HEADER, exchange.head.host]
    return await toServer(context, exchange, session, { prefix: CONTROL_PREFIX, named })
  }
  const sandboxId = host.unitId.slice('unit_'.length)
  if (servicePorts.includes(host.port)) {
    const named = [ID_HEADER, sandboxId, PORT_HEADER, String(host.port)]
    return await toServer(context, exchange, session, { prefix: SANDBOX_PREFIX, named })
  }
  return await toPort({ ...context, door }, exchange, session, { ...host, sandboxId }, pass)
}

async function toPort(
  context: GatewayContext & { door: Door },
  exchange: Exchange,
  session: Session,
  { label, port, sandboxId }: { label: string; port: number; sandboxId: string },
  pass: Pass,
): Promise<Outcome | Closed> {
  const route = await findRoute(context, label).catch(() => 'away' as const)
  if (route === 'away') return { kind: 'routing-unavailable' }
  if (route === null) return tell(exchange, GONE, { sandboxId, message: PORT_HOST_GONE })
  const { secretHash = null, host = null, wakesFor = null } = route.portRules ?? {}
  const mayWake = wakesFor !== null && route.state !== 'stopped'
  if (route.state !== 'running' && !mayWake)
    return tell(exchange, GONE, { sandboxId, message: PORT_HOST_PAUSED })
  const elsewhere = doorOf(context, exchange, route)
  if (elsewhere) return await passToHost(context, exchange, session, { route, door: elsewhere })
  if (secretHash !== null && !isShown(exchange, secretHash))
    return tell(exchange, FORBIDDEN, {
      sandboxId,
      message: `Visits of this sandbox need its traffic access token in the header ${TOKEN_HEADER}`,
    })
  const asked = askedOf(exchange, { host, port })
  session.name = label
  if (!context.sessions.enterUnit(session, route)) return { kind: 'too-many' }
  const target = {
    session,
    label: { name: label, secret: null },
    isMeant: () => true,
    refusingMs: REFUSING_MS,
  }
  const outcome = await toListener(context, target, route, async (run) => await pass(asked, run))
  if (outcome.kind !== 'not-listening') return outcome
  return tell(exchange, GONE, { sandboxId, message: 'The sandbox is running but port is not open', port })
}

/** A port that refuses the visit may be open for the sandbox itself. */
async function toListener(
  context: GatewayContext & { door: Door },
  target: Target,
  route: Route,
  pass: (run: Route) => Promise<ProxyResult>,
): Promise<Outcome | Closed> {
  const { loopbacks } = context.door
  let last = route
  const reach = async (run: Route, at: number): Promise<ProxyResult> => {
    const passed = await pass({ ...run, port: at })
    // What leads there takes connections also after the server there has ended.
    if (passed.kind !== 'bad-gateway' && passed.kind !== 'refused-connection') return passed
    loopbacks.forget(run)
    return { kind: 'refused-connection' }
  }
  const outcome = await connectWithRetry(context, target, route, async (run) => {
    last = run
    const known = loopbacks.known(run)
    return known === null ? await pass(run) : await reach(run, known)
  })
  if (outcome.kind !== 'not-listening') return outcome
  const found = await loopbacks.find(last)
  if (found === null) return outcome
  const atOnce = { ...target, refusingMs: { running: 0, woken: 0 } }
  return await connectWithRetry(context, atOnce, route, async (run) => await reach(run, found))
}

function isShown({ head }: Exchange, secretHash: string): boolean {
  const at = head.headers.findIndex((each, index) => index % 2 === 0 && each.toLowerCase() === TOKEN_HEADER)
  const shown = createHash('sha256')
    .update(head.headers[at + 1] ?? '')
    .digest()
  const expected = Buffer.from(secretHash, 'base64')
  return at >= 0 && shown.length === expected.length && timingSafeEqual(shown, expected)
}

/** As the unit gets it: with the host of the rules, and without the token, which is no business of what runs there. */
function askedOf(exchange: Exchange, { host, port }: { host: string | null; port: number }): Exchange {
  const { head } = exchange
  const headers = without(head.headers, [TOKEN_HEADER])
  const told = host === null ? {} : { hostForUnit: host.replaceAll('${PORT}', String(port)) }
  return { ...exchange, head: { ...head, headers, ...told } }
}

/** A route of a moment ago will do only where the unit certainly runs: else the visit would wake it. */
async function findRoute(
  { routes, waker, door }: GatewayContext & { door: Door },
  label: string,
): Promise<Route | null> {
  const known = await routes.find(label)
  return known && waker.findLease(known) ? known : await door.findNow(label)
}

/** It listens at a socket for the gateway alone, and believes the address of the visitor that it is told there. */
const SERVER: Route = {
  endpointId: '',
  unitId: '',
  protocol: 'http',
  secretHash: null,
  port: 80,
  address: 'localhost',
  state: 'running',
  stoppedReason: null,
  frozen: false,
  generation: 0,
}

/** On a host without a server, by the gateway of the host that has it. */
async function toServer(
  context: GatewayContext,
  exchange: Exchange,
  session: Session,
  { prefix, named }: { prefix: string; named: string[] },
): Promise<Outcome | Closed> {
  const { head } = exchange
  const socketPath = context.door?.socketPath ?? null
  if (socketPath === null) {
    const door = exchange.isHandedOver ? null : (context.handover?.ofServer() ?? null)
    return door === null
      ? { kind: 'unknown' }
      : await passToHost(context, exchange, session, { route: SERVER, door })
  }
  const headers = [...without(head.headers, [ID_HEADER, PORT_HEADER, HOST_HEADER]), ...named]
  const asked = {
    ...exchange,
    head: { ...head, headers, host: 'localhost', target: `${prefix}${head.target}` },
  }
  const outcome = await proxyRequestOver(asked, session, SERVER, connect(socketPath))
  const isAway = outcome.kind === 'refused-connection' || outcome.kind === 'stale'
  if (!isAway && outcome.kind !== 'bad-gateway') return outcome
  return tell(exchange, UNAVAILABLE, { message: 'The service is away for a moment; send the call again.' })
}

function without(headers: readonly string[], names: readonly string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] ?? ''
    if (!names.includes(name.toLowerCase())) kept.push(name, headers[at + 1] ?? '')
  }
  return kept
}

/** In the form that clients of this interface read. */
function tell({ response }: Exchange, status: number, told: Record<string, unknown>): Closed {
  if (!response.headersSent) {
    const body = Buffer.from(JSON.stringify({ ...told, code: status }))
    const headers = ['content-type', 'application/json', 'content-length', String(body.length)]
    response.writeHead(status, [...headers, 'cache-control', 'no-store'])
    response.end(body)
  }
  return { kind: 'closed' }
}
