// Where a unit can be reached from outside (spec 2.2).

import { z } from 'zod'
import { strict } from './fields.ts'
import { limits } from './limits.ts'

export const protocols = ['http', 'postgres', 'mysql', 'redis', 'mongodb', 'amqp', 'bolt', 'grpc'] as const
export type Protocol = (typeof protocols)[number]

/** `private`: only whoever has the URL, which carries a secret. */
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
      'Of a TCP endpoint its address without the password; of a database of a recipe with user and database.',
    ),
  portWithoutSni: portSchema
    .optional()
    .describe('For clients that cannot send a server name (SNI): the same host at this port, with TLS.'),
}).meta({ id: 'Endpoint' })

/** POST /v1/units/{id}/expose; `protocol` is design 5's. */
export const exposeSchema = strict({
  port: portSchema.describe('Where its visits arrive within the unit: one of the ports it declares, if any.'),
  mode: z.enum(endpointModes).optional().describe('Left out, it stays what it was, at first `private`.'),
  rotate: z.boolean().default(false).describe('A new address; the old one is dead within a second.'),
  protocol: z
    .enum(protocols)
    .optional()
    .describe(
      'Left out, what the unit declares for this port, else what it was published with, else `http`.',
    ),
}).meta({ id: 'Expose' })
export type Expose = z.infer<typeof exposeSchema>

export const exposedSchema = strict({
  url: z.url(),
  mode: z.enum(endpointModes),
  port: portSchema,
  warning: z.string().optional().describe('What else it meant, as that the unit was restarted.'),
}).meta({ id: 'Exposed' })
export type Exposed = z.infer<typeof exposedSchema>
