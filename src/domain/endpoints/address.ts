// What visitors call an endpoint: the host, and the URL around it. Shown in answers, and handed to the unit.

import type { App } from '../../app.ts'
import type { Config } from '../../config.ts'
import { formatEndpointLabel } from '../../contract/endpoint-label.ts'
import type { Protocol } from '../../contract/endpoint.ts'
import type { EndpointRecord } from '../../store/endpoints.ts'
import { openSecret } from './name.ts'

type Needs = Pick<App, 'config' | 'secretKey'>

export function hostOf({ config, secretKey }: Needs, teamId: string, endpoint: EndpointRecord): string {
  const label = formatEndpointLabel({ name: endpoint.name, secret: openSecret(secretKey, teamId, endpoint) })
  return `${label}.${config.domain}`
}

/** A TCP endpoint's is its address: user, password and database are the program's own (spec 2.2). */
export function urlOf(needs: Needs, teamId: string, endpoint: EndpointRecord): string {
  return urlAt(needs.config, endpoint.protocol, hostOf(needs, teamId, endpoint))
}

/** As an answer shows it; nothing where there is none, or the gateway no longer listens there. */
export function portWithoutSni(
  { config }: Pick<App, 'config'>,
  { gatewayPort }: EndpointRecord,
): { portWithoutSni?: number } {
  const range = config.gatewayPorts
  const isOpen = gatewayPort !== null && range && gatewayPort >= range.first && gatewayPort <= range.last
  return isOpen ? { portWithoutSni: gatewayPort } : {}
}

function urlAt(config: Config, protocol: Protocol, host: string): string {
  if (protocol === 'http') {
    const url = new URL(config.gatewayPublicUrl ?? `https://${config.domain}:${config.gatewayTls.port}`)
    url.hostname = host
    return url.origin
  }
  const port =
    protocol === 'mysql'
      ? (config.gatewayPublicMysql ?? config.gatewayMysql.port)
      : (config.gatewayPublicTls ?? config.gatewayTls.port)
  return `${schemes[protocol]}://${host}:${port}`
}

/** As clients name their protocol over TLS, where they tell the two apart. */
const schemes = {
  postgres: 'postgres',
  mysql: 'mysql',
  redis: 'rediss',
  mongodb: 'mongodb',
  amqp: 'amqps',
  bolt: 'bolt+s',
  grpc: 'grpcs',
} as const satisfies Record<Exclude<Protocol, 'http'>, string>
