// Every route of the service, in one list: the server, the OpenAPI document, the audit trail and the
// coverage tests read it.

import { z } from 'zod'
import { agentRoutes } from './routes/agents.ts'
import { auditRoutes } from './routes/audit.ts'
import { billingRoutes } from './routes/billing.ts'
import { noBody } from './http/body.ts'
import { eventRoutes } from './routes/events.ts'
import { forkRoutes } from './routes/forks.ts'
import { hostedAgentRoutes } from './routes/hosted-agents.ts'
import { inviteRoutes } from './routes/invites.ts'
import { meRoutes } from './routes/me.ts'
import { memberRoutes } from './routes/members.ts'
import { openApiDocument } from './openapi.ts'
import { defineOpenRoute, noParams, noQuery, type Route } from './route.ts'
import { paymentRoutes } from './routes/payments.ts'
import { processRoutes } from './routes/processes.ts'
import { recipeRoutes } from './routes/recipes.ts'
import { secretRoutes } from './routes/secrets.ts'
import { stackRoutes } from './routes/stacks.ts'
import { supportRoutes } from './routes/support.ts'
import { teamRoutes } from './routes/teams.ts'
import { unitCodeRoutes } from './routes/unit-code.ts'
import { unitDirectoryRoutes } from './routes/unit-directories.ts'
import { unitFileRoutes } from './routes/unit-files.ts'
import { unitEgressRoutes } from './routes/unit-egress.ts'
import { unitCallsRoutes } from './routes/unit-calls.ts'
import { unitSecretRoutes } from './routes/unit-secrets.ts'
import { unitEgressLogRoutes } from './routes/unit-egress-log.ts'
import { unitMetricsRoutes } from './routes/unit-metrics.ts'
import { unitTerminalRoutes } from './routes/unit-terminal.ts'
import { unitRoutes } from './routes/units.ts'

const describeService = defineOpenRoute({
  method: 'GET',
  path: '/v1/openapi.json',
  noun: 'service',
  summary: 'This document',
  action: 'openapi.read',
  kind: 'read',
  params: noParams,
  query: noQuery,
  body: noBody,
  response: z.record(z.string(), z.unknown()),
  errors: [],
  target: () => null,
  record: () => null,
  handle: async () => openApiDocument(routes),
})

export const routes: readonly Route[] = [
  ...unitRoutes,
  ...unitDirectoryRoutes,
  ...unitFileRoutes,
  ...unitMetricsRoutes,
  ...unitEgressRoutes,
  ...unitEgressLogRoutes,
  ...unitSecretRoutes,
  ...unitCallsRoutes,
  ...unitTerminalRoutes,
  ...processRoutes,
  ...unitCodeRoutes,
  ...stackRoutes,
  ...forkRoutes,
  ...recipeRoutes,
  ...secretRoutes,
  ...agentRoutes,
  ...hostedAgentRoutes,
  ...eventRoutes,
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
