// The addresses of endpoints: host and URL, for answers and for the unit's environment.

import type { App } from '../../app.ts'
import { formatEndpointLabel } from '../../contract/endpoint-label.ts'
import type { Protocol } from '../../contract/endpoint.ts'
import type { Env } from '../../contract/env.ts'
import type { GatewayFacts } from '../../contract/gateway-facts.ts'
import type { EndpointRecord } from '../../store/endpoints.ts'
import type { StoredSpec } from '../../store/unit-record.ts'
import { gatewayOf } from './gateways.ts'
import { openSecret } from './name.ts'

type Needs = Pick<App, 'config' | 'gateways' | 'secretKey'>
type OfUnit = { teamId: string; hostId: string }

export function hostOf(needs: Needs, unit: OfUnit, endpoint: EndpointRecord): string {
  const secret = openSecret(needs.secretKey, unit.teamId, endpoint)
  return `${formatEndpointLabel({ name: endpoint.name, secret })}.${gatewayOf(needs, unit).domain}`
}

/**
 * The URL of a TCP endpoint is its address without the password (spec 2.2), with user and database if a recipe sets
 * them.
 */
export function urlOf(
  needs: Needs,
  unit: OfUnit & { spec: Pick<StoredSpec, 'databasePorts' | 'env'> },
  endpoint: EndpointRecord,
): string {
  const { port, protocol } = endpoint
  const { spec } = unit
  const isOfRecipe = spec.databasePorts.some((of) => of.port === port && of.protocol === protocol)
  const login = isOfRecipe ? loginOf(protocol, spec.env) : nobody
  return urlAt(gatewayOf(needs, unit), protocol, hostOf(needs, unit, endpoint), login)
}

/**
 * Returns the port as an answer shows it; nothing if the endpoint has none, or if the gateway no longer listens
 * there.
 */
export function portWithoutSni(
  needs: Pick<App, 'config' | 'gateways'>,
  unit: { hostId: string },
  { gatewayPort }: EndpointRecord,
): { portWithoutSni?: number } {
  const range = gatewayOf(needs, unit).ports
  const isOpen = gatewayPort !== null && range && gatewayPort >= range.first && gatewayPort <= range.last
  return isOpen ? { portWithoutSni: gatewayPort } : {}
}

type Login = { user: string | null; path: string }

const nobody: Login = { user: null, path: '' }

/** As the images of the recipes (recipes/catalog/) read them. Bolt drivers take no user in a URL. */
function loginOf(protocol: Protocol, env: Env): Login {
  const plain = (name: string) => {
    const value = env[name]
    return typeof value === 'string' ? encodeURIComponent(value) : null
  }
  switch (protocol) {
    case 'postgres':
      return { user: plain('POSTGRES_USER'), path: `/${plain('POSTGRES_DB') ?? ''}` }
    case 'mysql':
      return { user: plain('MARIADB_USER'), path: `/${plain('MARIADB_DATABASE') ?? ''}` }
    case 'mongodb':
      return { user: plain('MONGO_INITDB_ROOT_USERNAME'), path: '/?authSource=admin' }
    case 'redis':
      return { user: 'default', path: '/0' }
    case 'amqp':
      return { user: plain('RABBITMQ_DEFAULT_USER'), path: '' }
    default:
      return nobody
  }
}

function urlAt(gateway: GatewayFacts, protocol: Protocol, host: string, { user, path }: Login): string {
  if (protocol === 'http') {
    const url = new URL(gateway.url)
    url.hostname = host
    return url.origin
  }
  const port = protocol === 'mysql' ? gateway.mysqlPort : gateway.tlsPort
  return `${schemes[protocol]}://${user === null ? '' : `${user}@`}${host}:${port}${path}`
}

/** The scheme for the protocol over TLS, if clients distinguish it. */
const schemes = {
  postgres: 'postgres',
  mysql: 'mysql',
  redis: 'rediss',
  mongodb: 'mongodb',
  amqp: 'amqps',
  bolt: 'bolt+s',
  grpc: 'grpcs',
} as const satisfies Record<Exclude<Protocol, 'http'>, string>
