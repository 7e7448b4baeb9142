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
      'Includes blocks that it shares with its copies; up to half a minute old. Null while there is no disk, or if the host does not count it.',
    ),
  limitBytes: bytes,
})

const runMetricsSchema = strict({
  startedAt: timestamp.nullable(),
  cpu: strict({
    usedMs: z.int().describe('Processor time of all its processes.'),
    limitedMs: z.int().describe('How long its processes were throttled by the limit of its size.'),
    limitCpus: z.number(),
  }),
  memory: strict({
    usedBytes: bytes.describe('Memory without the page cache.'),
    cacheBytes: bytes.describe('Page cache, which the kernel frees when memory is needed.'),
    peakBytes: bytes
      .nullable()
      .describe('The highest sum of both so far. Null if the kernel does not count it.'),
    limitBytes: bytes.describe(
      'The limit of the sum. In class `gvisor` it is larger than the memory of the size, because it includes the sandbox kernel.',
    ),
  }),
  pids: strict({
    count: z.int().describe('Processes and threads; in class `gvisor` those of the sandbox kernel.'),
    limit: z.int(),
  }),
  network: strict({ receivedBytes: bytes, sentBytes: bytes }).nullable(),
  io: strict({ readBytes: bytes, writtenBytes: bytes })
    .nullable()
    .describe(
      'Bytes read from and written to disk. With cgroups version 1, writes through the page cache are not counted. Null if the host does not count it.',
    ),
})

export const unitMetricsSchema = strict({
  unitId: z.string(),
  state: z.enum(unitStates),
  at: timestamp,
  run: runMetricsSchema
    .nullable()
    .describe(
      'Counted since the start of the machine. Null while there is no machine: the unit is stopped, failed, or in its second tier of sleep. In the first tier the values do not change.',
    ),
  disk: diskMetricsSchema,
  volume: diskMetricsSchema.nullable(),
}).meta({ id: 'UnitMetrics' })
export type UnitMetrics = z.infer<typeof unitMetricsSchema>

/** Event `end` of followed metrics. */
export const metricsEndSchema = strict({
  reason: z.string().describe('Why the stream ended.'),
}).meta({ id: 'MetricsEnd' })
