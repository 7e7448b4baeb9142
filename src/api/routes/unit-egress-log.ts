// What a unit reached and was refused, once or as a stream: a screen that follows it is one call, with one row in the
// audit log.

import type { App } from '../../app.ts'
import {
  egressLogEndSchema,
  egressLogLineSchema,
  egressLogPageSchema,
  egressLogQuerySchema,
  type EgressLogQuery,
} from '../../contract/egress-log.ts'
import type { Caller } from '../../domain/credentials/caller.ts'
import { followEgressLog, readEgressLog } from '../../domain/units/egress-log.ts'
import { errorSchema } from '../http/errors.ts'
import { eventStream, type EventStream } from '../http/sse.ts'
import { defineRoute, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const log = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/egress/log',
  summary: 'Read or follow what a unit reached and was refused',
  description:
    'Connections by name and refused look-ups of a unit with rules, by host, port, decision and minute. Lines are kept for ' +
    'seven days. A unit without rules has no lines. Wakes nothing.',
  action: 'unit.egress.log',
  kind: 'read',
  query: egressLogQuerySchema,
  response: egressLogPageSchema,
  events: { line: egressLogLineSchema, end: egressLogEndSchema, error: errorSchema },
  errors: [404],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, signal }) =>
    query.follow
      ? streamEgressLog(app, caller, params.id, query, signal)
      : await readEgressLog(app, caller, params.id, query),
})

function streamEgressLog(
  app: App,
  caller: Caller,
  id: string,
  query: EgressLogQuery,
  signal: AbortSignal,
): EventStream {
  return eventStream(async (send) => {
    for await (const event of followEgressLog(app, caller, id, query, signal)) {
      if (event.kind === 'line') await send({ event: 'line', id: event.cursor, data: event.line })
      else await send({ event: 'end', data: { reason: event.reason } })
    }
  })
}

export const unitEgressLogRoutes: readonly Route[] = [log]
