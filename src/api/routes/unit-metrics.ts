// The resource usage of a unit, once or as a stream. A page that follows it makes one call, with one row in the
// audit log.

import type { App } from '../../app.ts'
import { metricsEndSchema, metricsQuerySchema, unitMetricsSchema } from '../../contract/metrics.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { followMetrics, readMetrics } from '../../domain/units/metrics.ts'
import { noBody } from '../http/body.ts'
import { errorSchema } from '../http/errors.ts'
import { eventStream, type EventStream } from '../http/sse.ts'
import { defineRoute, idParams, type Route } from '../route.ts'

const metrics = defineRoute({
  method: 'GET',
  path: '/v1/units/{id}/metrics',
  noun: 'unit',
  summary: 'Read or follow what a unit uses',
  description:
    'Processor time, memory, processes, disk, network and disk traffic, as the host counts them. Does not wake the unit.',
  action: 'unit.metrics',
  kind: 'read',
  rate: 'requests',
  params: idParams,
  query: metricsQuerySchema,
  body: noBody,
  status: 200,
  response: unitMetricsSchema,
  events: { sample: unitMetricsSchema, end: metricsEndSchema, error: errorSchema },
  errors: [404, 409, 502],
  target: ({ params }) => params.id,
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal }) =>
    query.follow ? streamMetrics(app, caller, params.id, signal) : await readMetrics(app, caller, params.id),
})

function streamMetrics(app: App, caller: Caller, id: string, signal: AbortSignal): EventStream {
  return eventStream(async (send) => {
    for await (const sample of followMetrics(app, caller, id, signal))
      await send({ event: 'sample', data: sample })
    if (!signal.aborted) await send({ event: 'end', data: { reason: 'destroyed' } })
  })
}

export const unitMetricsRoutes: readonly Route[] = [metrics]
