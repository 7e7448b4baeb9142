// What the server answers to a gateway (protocol.ts): about the units of the gateway's host alone, which are all units where
// there is one host. For any other name or unit the answer is that there is none, but where a name leads may be asked of all
// hosts: the gateway that a visitor came to hands the visit over (handover/).

import type { App } from '../../app.ts'
import { recordUses } from '../../domain/units/activity/record-use.ts'
import { visitUnit } from '../../domain/units/activity/visit.ts'
import { openLoopback } from '../../domain/units/loopback.ts'
import { createSemaphore, type Semaphore } from '../../lib/concurrency/semaphore.ts'
import { findEndpointPorts } from '../../store/endpoint-ports.ts'
import { findEndpointRoutes } from '../../store/endpoints.ts'
import { parseAddress } from '../../lib/setting-values.ts'
import { findUnitsOnHost, saveGatewayFacts } from '../../store/host-gateways.ts'
import { listHosts } from '../../store/hosts.ts'
import { findAddressOfName } from '../../store/unit-names.ts'
import {
  type GatewayAnswer,
  type GatewayOperation,
  gatewayOperations,
  type GatewayRequest,
} from './protocol.ts'

/** A gateway that asks. */
export type Peer = {
  /** Of the gateway's host. */
  hostId: string
  /** Whether that is this server's own. */
  isOwn: boolean
  /** Questions for the database, of all connections of another host. */
  questions: Semaphore
  /** Visits that wait for their unit. */
  visits: Semaphore
}

/** The gateway of this host is not held back: it asks for the visitors of all units. */
export function ownGateway(hostId: string): Peer {
  const atOnce: Semaphore = (work) => work()
  return { hostId, isOwn: true, questions: atOnce, visits: atOnce }
}

/** However much another host asks, most of the database's connections are left to the rest of the service. */
const MAX_QUESTIONS = 4
const MAX_VISITS = 512

export function farGateway(hostId: string): Peer {
  return {
    hostId,
    isOwn: false,
    questions: createSemaphore(MAX_QUESTIONS),
    visits: createSemaphore(MAX_VISITS),
  }
}

/** The questions of a gateway without a database. */
const ofOtherHosts: ReadonlySet<GatewayOperation> = new Set(['hello', 'routes', 'ports', 'address'])

/** Whether there is such a question, for this gateway. */
export function mayAsk({ isOwn }: Peer, name: string): name is GatewayOperation {
  return Object.hasOwn(gatewayOperations, name) && !(isOwn && ofOtherHosts.has(name as GatewayOperation))
}

/** Of a private route of another host, whose gateway decides who may use it: no secret is this one's. */
const NO_SECRET = ''

type Handlers = {
  [K in GatewayOperation]: (app: App, from: Peer, request: GatewayRequest[K]) => Promise<GatewayAnswer[K]>
}

export const handlers: Handlers = {
  use: async (app, from, { unitId }) => {
    if ((await ownOf(app, from, [unitId])).length === 0) return { kind: 'refused', reason: 'gone' }
    return await from.visits(() => visitUnit(app, unitId))
  },
  used: async (app, from, { unitIds }) => {
    const own = await ownOf(app, from, unitIds)
    return { awake: [...(await from.questions(() => recordUses(app, own)))] }
  },
  visits: async (app, from, { worker = 0, unitIds, endpoints = {} }) => {
    const own = new Set(await ownOf(app, from, unitIds))
    const named = Object.entries(endpoints).filter(([id]) => own.has(id))
    app.activity.sessions.tell({ hostId: from.hostId, worker }, [...own], Object.fromEntries(named))
    return {}
  },
  hello: async (app, { hostId, questions }, facts) => {
    await questions(() => saveGatewayFacts(app.db, { hostId, facts }))
    app.gateways.set(hostId, facts)
    return {}
  },
  routes: async ({ db }, { hostId, questions }, { names, everywhere = false }) => {
    const found = await questions(() => findEndpointRoutes(db, names, everywhere ? {} : { hostId }))
    const routes = found.map(({ secretHash, hostId: there, ...route }) => ({
      ...(there === hostId ? route : { ...route, address: null }),
      ...(everywhere && { hostId: there }),
      secretHash: secretHash && (there === hostId ? secretHash.toString('base64') : NO_SECRET),
    }))
    return { routes }
  },
  ports: async ({ db }, { hostId, questions }, { everywhere = false, ...range }) => ({
    ports: await questions(() => findEndpointPorts(db, range, everywhere ? {} : { hostId })),
  }),
  doors: async (app, { hostId, questions }) => {
    const records = await questions(() => listHosts(app.db))
    const own = app.fleet.findLocal()?.id
    const hosts = records.flatMap(({ id, name, state, memberSince, address }) => {
      if (state === 'lost' || state === 'removed') return []
      const [since, port] =
        id === own
          ? [0, app.config.gatewayHandover?.port]
          : [memberSince.getTime(), app.gateways.get(id)?.handover]
      const host = address === null ? null : parseAddress(address).host
      return [{ id, name, since, address: host, port: port ?? null }]
    })
    return { own: hostId, hosts }
  },
  loopback: async (app, from, { unitId, port }) => {
    if ((await ownOf(app, from, [unitId])).length === 0) return { port: null }
    return { port: await from.visits(() => openLoopback(app, unitId, port)) }
  },
  address: async ({ db }, { hostId, questions }, asked) => ({
    address: await questions(() => findAddressOfName(db, { ...asked, hostId })),
  }),
}

/** Those of the units that are on the gateway's host: it can reach no other ones. */
async function ownOf(
  { db, fleet }: App,
  { hostId, isOwn, questions }: Peer,
  ids: string[],
): Promise<string[]> {
  const isOnly = isOwn && fleet.hosts().length === 1
  if (isOnly || ids.length === 0) return ids
  const own = await questions(() => findUnitsOnHost(db, { hostId, ids }))
  return ids.filter((id) => own.has(id))
}
