// The addresses at which a unit can be reached from outside (spec 2.2).

import { z } from 'zod'
import { strict } from './fields.ts'
import { limits } from './limits.ts'

export const protocols = ['http', 'postgres', 'mysql', 'redis', 'mongodb', 'amqp', 'bolt', 'grpc'] as const
export type Protocol = (typeof protocols)[number]

/** `private`: only for visitors with the URL, which carries a secret. */
export const endpointModes = ['public', 'private'] as const
export type EndpointMode = (typeof endpointModes)[number]

export const portSchema = z
  .int('must be a whole number from 1 to 65535')
  .min(1, 'must be a port from 1 to 65535')
  .max(limits.portMax, 'must be a port from 1 to 65535')

export const endpointSchema = strict({
  id: z.string(),
  port: portSchema,
  protocol: z.enum(protocols),
  mode: z.enum(endpointModes),
  url: z
    .url()
    .describe(
      'For a TCP endpoint: its address without the password; for a database from a recipe with user and database name.',
    ),
  portWithoutSni: portSchema
    .optional()
    .describe(
      'A port for clients that cannot send a server name (SNI): use it with the same host, with TLS.',
    ),
}).meta({ id: 'Endpoint' })

/** POST /v1/units/{id}/expose; `protocol` is defined in design 5. */
export const exposeSchema = strict({
  port: portSchema.describe(
    'The port in the unit that visits are sent to. If the unit declares ports, it must be one of them.',
  ),
  mode: z
    .enum(endpointModes)
    .optional()
    .describe('Default: the current mode, or `private` at the first publishing.'),
  rotate: z
    .boolean()
    .default(false)
    .describe('Whether to make a new address. The old one stops working within a second.'),
  protocol: z
    .enum(protocols)
    .optional()
    .describe(
      'Default: the protocol that the unit declares for this port, else the current one, else `http`.',
    ),
}).meta({ id: 'Expose' })
export type Expose = z.infer<typeof exposeSchema>

export const exposedSchema = strict({
  url: z.url(),
  mode: z.enum(endpointModes),
  port: portSchema,
  warning: z.string().optional().describe('A side effect of the call, such as a restart of the unit.'),
}).meta({ id: 'Exposed' })
export type Exposed = z.infer<typeof exposedSchema>
