// The audit log (spec 2.12, 4.5).

import { auditListSchema, auditQuerySchema } from '../../contract/audit.ts'
import { listAudit } from '../../domain/audit/list.ts'
import { noBody } from '../http/body.ts'
import { defineRoute, noParams, type Route } from '../route.ts'

const list = defineRoute({
  method: 'GET',
  path: '/v1/audit',
  noun: 'audit event',
  summary: "List the team's authenticated calls, newest first",
  description:
    'One event for each call, including refused and aborted ones. A read is listed once it is answered, a change as soon as it begins.',
  action: 'audit.list',
  kind: 'read',
  params: noParams,
  query: auditQuerySchema,
  body: noBody,
  response: auditListSchema,
  errors: [],
  target: () => null,
  record: ({ query }) => query,
  handle: (app, { query }, { caller }) => listAudit(app, caller, query),
})

export const auditRoutes: readonly Route[] = [list]
