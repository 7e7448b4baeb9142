// Where a unit can be reached from outside (spec 2.2).

import { z } from 'zod'
import { strict } from './fields.ts'
import { limits } from './limits.ts'

export const protocols = ['http', 'postgres', 'mysql', 'redis', 'mongodb', 'amqp', 'bolt', 'grpc'] as const
export type Protocol = (typeof protocols)[number]

/** `private`: only whoever has the URL, which carries a secret. */
export const endpointModes = ['public', 'private'] as const

export const portSchema = z
  .int('must be a whole number from 1 to 65535')
  .min(1, 'must be a port from 1 to 65535')
  .max(limits.portMax, 'must be a port from 1 to 65535')

export const endpointSchema = strict({
  id: z.string(),
  port: portSchema,
  protocol: z.enum(protocols),
  mode: z.enum(endpointModes),
  url: z.url(),
}).meta({ id: 'Endpoint' })
