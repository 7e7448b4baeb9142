// The public addresses of units (spec 2.2). A row is one name of one endpoint. It is live until it is retired by a
// newer name, or by the statement that ends its unit (unit-state.ts). Names are never reused.

import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { EndpointMode, Protocol } from '../contract/endpoint.ts'
import type { StoppedReason, UnitState } from '../contract/states.ts'
import { parsePortName, PORT_HOST_STACK, type PortHost, type PortRules } from '../contract/port-host.ts'
import { prepare } from './prepared.ts'
import type { Database } from './schema.ts'
import type { EndpointsTable } from './tables/endpoints.ts'

export type { EndpointsTable } from './tables/endpoints.ts'

/** A live endpoint, as the domain sees it. */
export type EndpointRecord = {
  id: string
  port: number
  protocol: Protocol
  mode: EndpointMode
  name: string
  sealedSecret: Buffer | null
  gatewayPort: number | null
}

export async function insertEndpoint(db: Kysely<Database>, endpoint: EndpointsTable): Promise<void> {
  await db.insertInto('endpoints').values(endpoint).execute()
}

/** Makes the same name lead to another port. */
export async function moveEndpoint(
  db: Kysely<Database>,
  { id, port, protocol }: Pick<EndpointRecord, 'id' | 'port' | 'protocol'>,
): Promise<void> {
  await db.updateTable('endpoints').set({ port, protocol }).where('id', '=', id).execute()
}

export async function retireEndpoint(
  db: Kysely<Database>,
  { id, at }: { id: string; at: Date },
): Promise<void> {
  await db.updateTable('endpoints').set({ retired_at: at }).where('id', '=', id).execute()
}

/** JSON has no bytes: they are base64. */
export type EndpointJson = Omit<EndpointRecord, 'sealedSecret'> & { sealedSecret: string | null }

/** The live endpoints of the unit in the surrounding query, its URL first. */
export function liveEndpoints(): RawBuilder<EndpointJson[]> {
  return sql<EndpointJson[]>`(
    select coalesce(json_agg(json_build_object('id', id, 'port', port, 'protocol', protocol, 'mode', mode,
      'name', name, 'gatewayPort', gateway_port, 'sealedSecret', encode(sealed_secret, 'base64')) order by protocol <> 'http'), '[]')
    from endpoints where endpoints.unit_id = units.id and retired_at is null
  )`
}

export function toEndpoint({ sealedSecret, ...plain }: EndpointJson): EndpointRecord {
  return { ...plain, sealedSecret: sealedSecret === null ? null : Buffer.from(sealedSecret, 'base64') }
}

/** Returns the current URL of a unit of any team. */
export async function findUrl(db: Kysely<Database>, unitId: string): Promise<EndpointRecord | null> {
  const row = await db
    .selectFrom('endpoints')
    .select(['id', 'port', 'protocol', 'mode', 'name'])
    .select(['sealed_secret as sealedSecret', 'gateway_port as gatewayPort'])
    .where('unit_id', '=', unitId)
    .where('protocol', '=', 'http')
    .where('retired_at', 'is', null)
    .executeTakeFirst()
  return row ?? null
}

/** The destination of an endpoint's visits, as the gateway's role sees it, which may read nothing more. */
export type EndpointRoute = {
  endpointId: string
  name: string
  unitId: string
  protocol: Protocol
  /** SHA-256 of the secret at the end of a private label; null for a public endpoint. */
  secretHash: Buffer | null
  /** The port in the unit. */
  port: number
  /** The unit's address, the same for its whole life; null while it is being created. */
  address: string | null
  state: UnitState
  stoppedReason: StoppedReason | null
  /** Whether its machine is frozen (design 3). */
  frozen: boolean
  /** Connections to an older run must not be used for a newer one (reliability I10). */
  generation: number
  /** Where the unit is. Absent if a server that is older than this gateway has answered. */
  hostId?: string | undefined
  /** Of a port that has a name of its own, where visits follow rules. */
  portRules?: PortRules | undefined
}

/** Of any team: returns the live endpoints with these names, with `hostId` only those of units on that host. */
export async function findEndpointRoutes(
  db: Kysely<Database>,
  names: string[],
  scope: { hostId?: string } = {},
): Promise<EndpointRoute[]> {
  const hosts = names.flatMap((name) => {
    const host = parsePortName(name)
    return host === null ? [] : [{ ...host, name }]
  })
  if (hosts.length > 0) {
    const others = names.filter((name) => parsePortName(name) === null)
    const found = others.length === 0 ? [] : await findEndpointRoutes(db, others, scope)
    return [...found, ...(await findPortRoutes(db, hosts, scope))]
  }
  const { hostId } = scope
  const [name] = names
  // A visitor of a unit that was not visited lately waits for this one.
  if (name !== undefined && names.length === 1 && hostId === undefined) return await routeOfName(db, { name })
  return await selectRoutes(db)
    .where('endpoints.name', '=', sql<string>`any(${names})`)
    .$if(hostId !== undefined, (query) => query.where('units.host_id', '=', hostId ?? ''))
    .execute()
}

/** Routes to ports of units that have a name for each (contract/port-host.ts). No row says so: the name does. */
async function findPortRoutes(
  db: Kysely<Database>,
  hosts: (PortHost & { name: string; isOfAnyUnit: boolean })[],
  { hostId }: { hostId?: string },
): Promise<EndpointRoute[]> {
  const units = await db
    .selectFrom('units')
    .innerJoin('stacks', 'stacks.id', 'units.stack_id')
    .select(['units.id', 'units.address', 'units.state', 'units.stopped_reason as stoppedReason'])
    .select(['units.frozen', 'units.generation', 'units.host_id as hostId'])
    .select(['units.port_rules as portRules', 'stacks.name as stack'])
    .where('units.id', 'in', [...new Set(hosts.map(({ unitId }) => unitId))])
    .where('units.state', 'not in', ['destroying', 'destroyed', 'error'])
    .$if(hostId !== undefined, (query) => query.where('units.host_id', '=', hostId ?? ''))
    .execute()
  const byId = new Map(units.map((unit) => [unit.id, unit]))
  return hosts.flatMap(({ unitId, port, name, isOfAnyUnit }) => {
    const unit = byId.get(unitId)
    if (!unit || (!isOfAnyUnit && unit.stack !== PORT_HOST_STACK)) return []
    const { id, portRules, stack: _stack, ...run } = unit
    const endpointId = `ep_${id.slice('unit_'.length)}`
    const route = { ...run, endpointId, name, unitId, protocol: 'http' as const, secretHash: null, port }
    return [portRules === null || isOfAnyUnit ? route : { ...route, portRules }]
  })
}

const routeOfName = prepare<EndpointRoute, { name: string }>(
  'route_of_name',
  ['name'],
  ({ name }, db) => sql`${selectRoutes(db).where('endpoints.name', '=', name)}`,
)

function selectRoutes(db: Kysely<Database>) {
  return db
    .selectFrom('endpoints')
    .innerJoin('units', 'units.id', 'endpoints.unit_id')
    .select([
      'endpoints.id as endpointId',
      'endpoints.name',
      'endpoints.unit_id as unitId',
      'endpoints.protocol',
      'endpoints.secret_hash as secretHash',
      'endpoints.port',
      'units.address',
      'units.state',
      'units.stopped_reason as stoppedReason',
      'units.frozen',
      'units.generation',
      'units.host_id as hostId',
    ])
    .where('endpoints.retired_at', 'is', null)
}
