// What a unit may reach (design 5, decisions/egress.md).

import {
  egressAskedSchema,
  egressCheckSchema,
  egressDecisionSchema,
  egressInForceSchema,
  egressSetSchema,
} from '../../contract/egress.ts'
import { checkUnitEgress, getUnitEgress, setUnitEgress } from '../../domain/units/egress.ts'
import { jsonBody } from '../http/body.ts'
import { defineRoute, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const get = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/egress',
  summary: 'Get what a unit may reach',
  action: 'unit.egress.read',
  kind: 'read',
  response: egressInForceSchema,
  errors: [404],
  handle: (app, { params }, { caller }) => getUnitEgress(app, caller, params.id),
})

const set = defineRoute({
  ...aboutUnit,
  method: 'PUT',
  path: '/v1/units/{id}/egress',
  summary: 'Set what a unit may reach',
  description:
    'Replaces the rules, also while the unit runs, and answers once they are in force. Connections that are no longer ' +
    'allowed are cut. An omitted field gets the bound of the credential and the team; rules beyond that bound are refused ' +
    'with 402. Wakes nothing.',
  action: 'unit.egress',
  kind: 'change',
  body: jsonBody(egressAskedSchema),
  response: egressSetSchema,
  errors: [402, 404, 409, 413, 415, 502],
  record: ({ body }) => body,
  outcome: (answer) => {
    const { appliedAt: _, ...added } = answer
    return { added }
  },
  handle: (app, { params, body }, { caller }) => setUnitEgress(app, caller, params.id, body),
})

const check = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/egress/check',
  summary: 'Say whether a unit may reach a host',
  description: 'Compares the rules only: nothing is sent to the host, and its name is not resolved.',
  action: 'unit.egress.check',
  kind: 'change',
  body: jsonBody(egressCheckSchema),
  response: egressDecisionSchema,
  errors: [404, 413, 415],
  record: ({ body }) => body,
  handle: (app, { params, body }, { caller }) => checkUnitEgress(app, caller, params.id, body),
})

export const unitEgressRoutes: readonly Route[] = [get, set, check]
