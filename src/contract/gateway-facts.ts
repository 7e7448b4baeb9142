// What a gateway says of itself: by this the URLs of the units on its host are written. It comes from another machine,
// so it must be nothing that a URL could hide something in.

import { z } from 'zod'
import { portSchema } from './endpoint.ts'
import { strict } from './fields.ts'

const domain = z.string().regex(/^(?!.{190})[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*$/)
const endpointPort = z.int().min(1024).max(65_535)

export const gatewayFactsSchema = strict({
  /** The domain below which each endpoint has its name. */
  domain,
  /** Scheme, domain and port of units' URLs. */
  url: z.string().max(256),
  /** The ports of TCP endpoints. */
  tlsPort: portSchema,
  mysqlPort: portSchema,
  /** The ports for endpoints of their own; both ends are included. */
  ports: strict({ first: endpointPort, last: endpointPort }).nullable(),
  /** Where other hosts' gateways hand visits over to it; absent: they cannot. A server that is older knows no such field. */
  handover: portSchema.optional(),
}).refine(({ domain: name, url }) => isOriginOf(name, url), 'has a URL of another domain')
export type GatewayFacts = z.infer<typeof gatewayFactsSchema>

function isOriginOf(name: string, text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null
  return (
    url !== null && ['http:', 'https:'].includes(url.protocol) && url.origin === text && url.hostname === name
  )
}

export type GatewaySettings = {
  domain: string
  gatewayTls: { port: number }
  gatewayMysql: { port: number }
  gatewayPorts: GatewayFacts['ports']
  gatewayPublicUrl: string | null
  gatewayPublicTls: number | null
  gatewayPublicMysql: number | null
  gatewayHandover: { port: number } | null
}

/** What a gateway with these settings says. */
export function gatewayFactsOf(settings: GatewaySettings): GatewayFacts {
  const { domain: name, gatewayTls, gatewayMysql, gatewayPorts } = settings
  return {
    domain: name,
    url: settings.gatewayPublicUrl ?? new URL(`https://${name}:${gatewayTls.port}`).origin,
    tlsPort: settings.gatewayPublicTls ?? gatewayTls.port,
    mysqlPort: settings.gatewayPublicMysql ?? gatewayMysql.port,
    ports: gatewayPorts,
    ...(settings.gatewayHandover && { handover: settings.gatewayHandover.port }),
  }
}
