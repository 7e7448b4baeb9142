// A unit, as every answer shows it (spec 2.1).

import { z } from 'zod'
import { endpointSchema, portSchema, protocols } from './endpoint.ts'
import { envSchema } from './env.ts'
import { cents, queryCursor, queryFlag, queryInteger, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { sizes } from './policy.ts'
import { stoppedReasons, unitStates } from './states.ts'

const lastExitSchema = strict({
  code: z.int().describe('The exit code; 128 + n for signal n.'),
  oomKilled: z.boolean(),
  at: timestamp,
})

/** Not in the spec: whether processes resume or start again (decision 37). */
const memorySchema = strict({
  kept: z
    .boolean()
    .nullable()
    .describe(
      'For a sleeping unit: whether it wakes with the memory of its processes, or starts again from its disk. Null in every other state, and while this is not known yet.',
    ),
  longSleep: z
    .enum(['tried', 'lost'])
    .describe(
      'What becomes of it in a sleep that lasts longer than the machine stands frozen, and in a fork: the host tries to keep and to copy it, or it is lost and the disk alone is left. `lost` where the host cannot, or could not the last time.',
    ),
})

export const unitSchema = strict({
  id: z.string(),
  teamId: z.string(),
  stackId: z.string(),
  name: z.string(),
  image: z.string(),
  size: z.enum(sizes),
  state: z.enum(unitStates),
  internalHost: z.string().describe("The unit's host name on the team's private network."),
  endpoints: z.array(endpointSchema),
  ports: z.array(portSchema),
  databasePorts: z.array(strict({ port: portSchema, protocol: z.enum(protocols) })),
  expose: portSchema.nullable(),
  env: envSchema.describe('The environment as declared; secrets by name only.'),
  createdAt: timestamp,
  startedAt: timestamp
    .nullable()
    .describe('When the current run started, or the last one if the unit does not run.'),
  sleep: z.string(),
  sleepsAt: timestamp.nullable().describe('When the unit goes to sleep unless it is used before.'),
  lastUsedAt: timestamp.nullable(),
  costCentsSoFar: cents,
  error: z.string().nullable(),
  destroysAt: timestamp.nullable().describe('When a unit in `error` is destroyed.'),
  stoppedReason: z.enum(stoppedReasons).nullable(),
  lastExit: lastExitSchema.nullable(),
  files: z.array(strict({ path: z.string(), bytes: z.int() })),
  forkedFrom: z.string().nullable(),
  memory: memorySchema,
}).meta({ id: 'Unit' })

export type Unit = z.infer<typeof unitSchema>

/** GET /v1/units. */
export const unitListQuerySchema = strict({
  stack: text(100).optional().describe('Id or name of a stack.'),
  all: queryFlag.describe('Also destroyed units.'),
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.max),
  cursor: queryCursor,
})
export type UnitListQuery = z.infer<typeof unitListQuerySchema>

export const unitListSchema = strict({ units: z.array(unitSchema), next: z.string().nullable() }).meta({
  id: 'UnitList',
})
export type UnitList = z.infer<typeof unitListSchema>
