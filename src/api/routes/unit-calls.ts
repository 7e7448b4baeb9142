// What reached a unit through a port of its own, where this service sees no calls: programs that pass such calls on tell of
// them (packages/agents/src/relay-report.ts). The call does nothing but stand in the audit log.

import { doneSchema } from '../../contract/member.ts'
import { unitCallsSchema } from '../../contract/unit-calls.ts'
import { getRecord } from '../../domain/units/get.ts'
import { jsonBody } from '../http/body.ts'
import { defineRoute, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'
import { recordCalls } from './unit-records.ts'

const tell = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/calls',
  summary: 'Write into the audit log what reached a unit through a port of its own',
  description:
    'For programs that pass on calls of another protocol, such as `berth agents forward`. The log has what they tell: it is not ' +
    'observed. Wakes nothing.',
  action: 'unit.calls',
  kind: 'change',
  body: jsonBody(unitCallsSchema),
  response: doneSchema,
  errors: [404, 413, 415],
  record: ({ body }) => recordCalls(body),
  handle: async (app, { params }, { caller }) => {
    await getRecord(app, caller, params.id)
    return { ok: true as const }
  },
})

export const unitCallsRoutes: readonly Route[] = [tell]
