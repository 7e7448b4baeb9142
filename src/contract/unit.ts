// A unit, as every answer shows it (spec 2.1).

import { z } from 'zod'
import { endpointSchema, portSchema, protocols } from './endpoint.ts'
import { unitEgressSchema } from './egress.ts'
import { envSchema } from './env.ts'
import { cents, queryCursor, queryFlag, queryInteger, queryList, strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'
import { metadataQuerySchema, metadataSchema } from './metadata.ts'
import { sizes } from './policy.ts'
import { stoppedReasons, unitStates } from './states.ts'
import { timeToLiveChangeFields, unitEnds } from './time-to-live.ts'

/** What was copied of a source: `config` means only its spec. */
export const copiedKinds = ['memory', 'disk', 'config'] as const
export type Copied = (typeof copiedKinds)[number]

const lastExitSchema = strict({
  code: z.int().describe('The exit code; 128 + n for signal n.'),
  oomKilled: z.boolean(),
  at: timestamp,
})

/** Not in the spec: whether processes resume or start again (decisions/memory.md). */
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
      'Whether the memory survives the second tier of sleep and is copied by a fork. `tried`: the host attempts it. `lost`: only the disk is kept, since this host cannot keep memory or failed the last time.',
    ),
})

/** In the order in which they come; a unit has some of them. */
export const creationStages = [
  'waiting',
  'downloading',
  'unpacking',
  'building',
  'copying',
  'preparing',
  'starting',
  'checking',
] as const
export type CreationStage = (typeof creationStages)[number]

/** Not in the spec: the first unit of an image takes minutes. */
const unitProgressSchema = strict({
  stage: z
    .enum(creationStages)
    .describe(
      '`waiting`: other images, or units that it starts after, come first. `downloading`, `unpacking`, `building`: its image, which only the first unit waits for. `copying`: it is a fork. `preparing`: its disk and network. `starting`: its process. `checking`: until its healthcheck passes.',
    ),
  startedAt: timestamp.describe('When this stage began.'),
  bytes: strict({ done: z.int(), total: z.int() })
    .nullable()
    .describe('Of a download that has begun; null for everything else.'),
  log: z.array(z.string()).describe('The newest lines of the build of its image, oldest first.'),
})
export type UnitProgress = z.infer<typeof unitProgressSchema>

export const unitSchema = strict({
  id: z.string(),
  teamId: z.string(),
  stackId: z.string(),
  name: z.string(),
  image: z.string(),
  cmd: z.array(z.string()).nullable().describe('The arguments as declared; null for those of the image.'),
  entrypoint: z.array(z.string()).nullable().describe('As declared; null for that of the image.'),
  size: z.enum(sizes),
  state: z.enum(unitStates),
  internalHost: z.string().describe("The unit's host name on the team's private network."),
  endpoints: z.array(endpointSchema),
  ports: z.array(portSchema),
  databasePorts: z.array(strict({ port: portSchema, protocol: z.enum(protocols) })),
  expose: portSchema.nullable(),
  env: envSchema.describe('The environment as declared; secrets by name only.'),
  volume: strict({ mount: z.string(), gb: z.int() }).nullable(),
  healthcheck: strict({
    cmd: z.array(z.string()),
    intervalMs: z.int(),
    timeoutMs: z.int(),
  }).nullable(),
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
  forkedFrom: z.string().nullable().describe('The unit that it is a copy of, which may be destroyed by now.'),
  copied: z.enum(copiedKinds).nullable().describe('What was copied of it; null for a unit that is no copy.'),
  createdBy: strict({
    id: z.string().describe('The id of the key or connected agent; for a session, of the person.'),
    kind: z.enum(['key', 'oauth', 'session']),
    name: z.string().describe('At that time; for a session, the address of the person.'),
  })
    .nullable()
    .describe('The creator; null for a unit of an older release.'),
  memory: memorySchema,
  progress: unitProgressSchema
    .nullable()
    .describe('How far a unit in `creating` is; null in every other state.'),
  host: strict({
    id: z.string().describe('Units with the same id run on the same host.'),
    region: z.string().nullable().describe('Null where the operator named none.'),
  }).describe('The host that it runs on.'),
  egress: unitEgressSchema.describe('What it may reach.'),
  nested: z.boolean().describe('Whether containers may run in it.'),
  runtime: z
    .string()
    .nullable()
    .describe(
      'The program that its newest run was started with, such as `runsc 20260905.0` or `runc 1.1.5`. A unit keeps it until it starts again. Null before the first run.',
    ),
  metadata: z.record(z.string(), z.string()).describe('Labels that its team gave it.'),
  timeToLive: z.string().nullable().describe('How long it lives, as it was last set; null without an end.'),
  atEnd: z.enum(unitEnds).describe('What happens at the end of its time to live.'),
  endsAt: timestamp
    .nullable()
    .describe('When its time to live has passed; null without one, and until the unit is ready.'),
}).meta({ id: 'Unit' })

export type Unit = z.infer<typeof unitSchema>

const filter = {
  stack: text(100).optional().describe('Id or name of a stack.'),
  state: queryList(unitStates)
    .optional()
    .describe('Only units in one of these states, separated by commas; `destroyed` needs no `all`.'),
  q: text(100)
    .optional()
    .describe('Only units with this in their name, the name of their stack or their image.'),
  all: queryFlag.describe('Also destroyed units.'),
  metadata: metadataQuerySchema
    .optional()
    .describe(
      'Only units with all of these labels: pairs as in a query string, encoded as one value, such as `app%3Dshop%26user%3D7`.',
    ),
}

export const unitOrders = ['createdAt', 'name', 'state', 'cost', 'lastUsedAt'] as const
export type UnitOrder = (typeof unitOrders)[number]
type UnitSort = UnitOrder | `-${UnitOrder}`
const unitSorts = unitOrders.flatMap((order): UnitSort[] => [order, `-${order}`])

/** GET /v1/units. */
export const unitListQuerySchema = strict({
  ...filter,
  sort: z
    .enum(unitSorts)
    .optional()
    .describe(
      'Default: `-createdAt`. With `-`, the greatest or newest first. Units that were never used are used least recently.',
    ),
  limit: queryInteger(1, limits.pageSize.max, limits.pageSize.max),
  cursor: queryCursor.describe('The `next` of a page with the same filter and sort.'),
})
export type UnitListQuery = z.infer<typeof unitListQuerySchema>

export const unitListSchema = strict({ units: z.array(unitSchema), next: z.string().nullable() }).meta({
  id: 'UnitList',
})
export type UnitList = z.infer<typeof unitListSchema>

/** GET /v1/units/summary. */
export const unitSummaryQuerySchema = strict(filter)
export type UnitSummaryQuery = z.infer<typeof unitSummaryQuerySchema>

export const unitSummarySchema = strict({
  byState: z.record(z.enum(unitStates), z.int()),
  centsPerHour: cents.describe('What these units cost an hour at this moment, with their volumes.'),
  total: z.int(),
}).meta({ id: 'UnitSummary' })
export type UnitSummary = z.infer<typeof unitSummarySchema>

/** PATCH /v1/units/{id}. */
export const unitChangeSchema = strict({
  metadata: metadataSchema.optional().describe('Replaces all labels.'),
  ...timeToLiveChangeFields,
}).meta({ id: 'UnitChange' })
export type UnitChange = z.infer<typeof unitChangeSchema>

/** The name of the stack is in the unit's host name: NAME.STACK.internal. */
export function stackOf({ internalHost }: Pick<Unit, 'internalHost'>): string {
  return internalHost.split('.').at(1) ?? ''
}
