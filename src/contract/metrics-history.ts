// What units have used, and when their memory was kept: a day by the minute, a month by the hour.

import { z } from 'zod'
import { strict, timestamp } from './fields.ts'

export const metricsRanges = ['day', 'month'] as const
export type MetricsRange = (typeof metricsRanges)[number]

/** GET /v1/units/{id}/metrics/history. */
export const metricsHistoryQuerySchema = strict({
  range: z
    .enum(metricsRanges)
    .default('day')
    .describe(
      '`day`: the last 24 hours in steps of a minute. `month`: the last 30 days in steps of an hour.',
    ),
})

const bytes = z.int()

export const metricsHistorySchema = strict({
  unitId: z.string(),
  range: z.enum(metricsRanges),
  from: timestamp.describe('The beginning of the first step.'),
  until: timestamp,
  stepSeconds: z.int(),
  limitCpus: z.number(),
  points: z
    .array(
      strict({
        at: timestamp.describe('The beginning of the step.'),
        cpuMs: z.int().describe('Processor time of all its processes in this step.'),
        memoryBytes: bytes.describe('The most of its samples, one a minute, without the page cache.'),
        receivedBytes: bytes,
        sentBytes: bytes,
      }),
    )
    .describe('Oldest first. A step in which the unit slept or was stopped has no point.'),
  checkpoints: z
    .array(
      strict({
        at: timestamp,
        kept: z
          .boolean()
          .describe('False: the checkpoint failed, so the next start was to boot from the disk.'),
      }),
    )
    .describe(
      'Each time a sleep grew so long that the memory of the unit was written to disk, oldest first. The 200 newest. Empty in a class that keeps no memory.',
    ),
}).meta({ id: 'MetricsHistory' })
export type MetricsHistory = z.infer<typeof metricsHistorySchema>

export const recentMetricsSchema = strict({
  from: timestamp.describe('The beginning of the first step.'),
  stepSeconds: z.int(),
  units: z
    .array(
      strict({
        id: z.string(),
        cpuMs: z
          .array(z.int().nullable())
          .describe('Processor time in each step; null where the unit slept or was stopped.'),
      }),
    )
    .describe('Units that ran in the last day: the 1000 that were made last.'),
}).meta({ id: 'RecentMetrics' })
export type RecentMetrics = z.infer<typeof recentMetricsSchema>
