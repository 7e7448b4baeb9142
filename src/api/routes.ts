// Every route of the service, in one list: the server, the OpenAPI document, the audit trail and the
// coverage tests read it.

import { z } from 'zod'
import { agentRoutes } from './agents.ts'
import { auditRoutes } from './audit.ts'
import { billingRoutes } from './billing.ts'
import { noBody } from './body.ts'
import { forkRoutes } from './forks.ts'
import { inviteRoutes } from './invites.ts'
import { meRoutes } from './me.ts'
import { memberRoutes } from './members.ts'
import { openApiDocument } from './openapi.ts'
import { defineOpenRoute, noParams, noQuery, type Route } from './route.ts'
import { paymentRoutes } from './payments.ts'
import { recipeRoutes } from './recipes.ts'
import { stackRoutes } from './stacks.ts'
import { supportRoutes } from './support.ts'
import { teamRoutes } from './teams.ts'
import { unitRoutes } from './units.ts'

const describeService = defineOpenRoute({
  method: 'GET',
  path: '/v1/openapi.json',
  noun: 'service',
  summary: 'This document',
  action: 'openapi.read',
  kind: 'read',
  rate: 'requests',
  params: noParams,
  query: noQuery,
  body: noBody,
  status: 200,
  response: z.record(z.string(), z.unknown()),
  events: {},
  errors: [],
  target: () => null,
  record: () => null,
  handle: async () => openApiDocument(routes),
})

export const routes: readonly Route[] = [
  ...unitRoutes,
  ...stackRoutes,
  ...forkRoutes,
  ...recipeRoutes,
  ...agentRoutes,
  ...auditRoutes,
  ...billingRoutes,
  ...teamRoutes,
  ...memberRoutes,
  ...inviteRoutes,
  ...paymentRoutes,
  ...meRoutes,
  ...supportRoutes,
  describeService,
]
