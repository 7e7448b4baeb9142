// GET /v1/units/{id}/metrics: what a unit uses now, as the host counts it.

import { z } from 'zod'
import { queryFlag, strict, timestamp } from './fields.ts'
import { unitStates } from './states.ts'

export const metricsQuerySchema = strict({
  follow: queryFlag.describe('Whether to stream a sample every 2 seconds as Server-Sent Events.'),
})

const bytes = z.int()

const diskMetricsSchema = strict({
  usedBytes: bytes
    .nullable()
    .describe(
      'With what it shares with its copies, up to half a minute old. Null while there is no disk, or where the host does not count it.',
    ),
  limitBytes: bytes,
})

const runMetricsSchema = strict({
  startedAt: timestamp.nullable(),
  cpu: strict({
    usedMs: z.int().describe('Processor time of all its processes.'),
    limitedMs: z.int().describe('How long it was held back because it had used what its size has.'),
    limitCpus: z.number(),
  }),
  memory: strict({
    usedBytes: bytes.describe('Without the cache.'),
    cacheBytes: bytes.describe('Files in memory, which the kernel takes back where memory is needed.'),
    peakBytes: bytes
      .nullable()
      .describe('The most so far of both together. Null where the kernel does not count it.'),
    limitBytes: bytes.describe(
      'Of both together. More than its size has in class `gvisor`, whose kernel counts too.',
    ),
  }),
  pids: strict({
    count: z.int().describe('Processes and threads; in class `gvisor` those of its kernel.'),
    limit: z.int(),
  }),
  network: strict({ receivedBytes: bytes, sentBytes: bytes }).nullable(),
  io: strict({ readBytes: bytes, writtenBytes: bytes })
    .nullable()
    .describe(
      'What its disks read and wrote for it. Where the host has control groups of version 1, what it writes by way of the cache is not counted. Null where the host does not count it.',
    ),
})

export const unitMetricsSchema = strict({
  unitId: z.string(),
  state: z.enum(unitStates),
  at: timestamp,
  run: runMetricsSchema
    .nullable()
    .describe(
      'Counted since the machine was started. Null while there is none: the unit is stopped, failed, or in its second tier of sleep. In the first it stands still, and so do these.',
    ),
  disk: diskMetricsSchema,
  volume: diskMetricsSchema.nullable(),
}).meta({ id: 'UnitMetrics' })
export type UnitMetrics = z.infer<typeof unitMetricsSchema>

/** Event `end` of followed metrics. */
export const metricsEndSchema = strict({
  reason: z.string().describe('Why the stream ended.'),
}).meta({ id: 'MetricsEnd' })
