// The resource usage of a unit, once, as a stream, or of the last day and month. A page that follows it makes one call, with one row in the
// audit log.

import type { App } from '../../app.ts'
import { metricsEndSchema, metricsQuerySchema, unitMetricsSchema } from '../../contract/metrics.ts'
import {
  metricsHistoryQuerySchema,
  metricsHistorySchema,
  recentMetricsSchema,
} from '../../contract/metrics-history.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { followMetrics, readMetrics } from '../../domain/units/metrics.ts'
import { readMetricsHistory, readRecentMetrics } from '../../domain/units/metrics-history.ts'
import { errorSchema } from '../http/errors.ts'
import { eventStream, type EventStream } from '../http/sse.ts'
import { defineRoute, noParams, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const metrics = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/metrics',
  summary: 'Read or follow what a unit uses',
  description:
    'Processor time, memory, processes, disk, network and disk traffic, as the host counts them. Does not wake the unit.',
  action: 'unit.metrics',
  kind: 'read',
  query: metricsQuerySchema,
  response: unitMetricsSchema,
  events: { sample: unitMetricsSchema, end: metricsEndSchema, error: errorSchema },
  errors: [404, 409, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal }) =>
    query.follow ? streamMetrics(app, caller, params.id, signal) : await readMetrics(app, caller, params.id),
})

const history = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/metrics/history',
  summary: 'Read what a unit used in the last day or month',
  description:
    'Processor time, memory and network traffic, by the minute or by the hour. Also of a unit that is destroyed, while it is kept. Does not wake the unit.',
  action: 'unit.metrics.history',
  kind: 'read',
  query: metricsHistoryQuerySchema,
  response: metricsHistorySchema,
  errors: [404],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller }) =>
    await readMetricsHistory(app, caller, params.id, query.range),
})

const recent = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/metrics/recent',
  summary: 'Read what the units of the team used in the last day',
  description: 'Processor time of each unit by the hour, for small plots in a list. Wakes nothing.',
  action: 'unit.metrics.recent',
  kind: 'read',
  params: noParams,
  response: recentMetricsSchema,
  errors: [],
  target: () => null,
  handle: async (app, _input, { caller }) => await readRecentMetrics(app, caller),
})

function streamMetrics(app: App, caller: Caller, id: string, signal: AbortSignal): EventStream {
  return eventStream(async (send) => {
    for await (const sample of followMetrics(app, caller, id, signal))
      await send({ event: 'sample', data: sample })
    if (!signal.aborted) await send({ event: 'end', data: { reason: 'destroyed' } })
  })
}

export const unitMetricsRoutes: readonly Route[] = [metrics, history, recent]
