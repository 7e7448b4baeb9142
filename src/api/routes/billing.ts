// Prices, usage and the remaining quota (spec 4.4, 4.5).

import { pricingSchema } from '../../contract/pricing.ts'
import { quotaSchema } from '../../contract/quota.ts'
import { usageQuerySchema, usageSchema } from '../../contract/usage.ts'
import { getQuota } from '../../domain/units/quota.ts'
import { getUsage } from '../../domain/billing/usage.ts'
import { getPricing } from '../../domain/units/pricing.ts'
import { noBody } from '../http/body.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'

const aboutMoney = {
  method: 'GET',
  noun: 'account',
  kind: 'read',
  params: noParams,
  body: noBody,
  errors: [],
  target: () => null,
} as const

const pricing = defineRoute({
  ...aboutMoney,
  path: '/v1/pricing',
  summary: 'List the sizes and what they cost',
  action: 'pricing.read',
  query: noQuery,
  response: pricingSchema,
  record: () => null,
  handle: async (app) => getPricing(app.config),
})

export const quotaRoute = defineRoute({
  ...aboutMoney,
  path: '/v1/quota',
  summary: 'Show what this credential may still spend and run',
  action: 'quota.read',
  query: noQuery,
  response: quotaSchema,
  record: () => null,
  handle: (app, _input, { caller }) => getQuota(app, caller),
})

const usage = defineRoute({
  ...aboutMoney,
  path: '/v1/usage',
  summary: "Show the team's usage per day",
  action: 'usage.read',
  query: usageQuerySchema,
  response: usageSchema,
  record: ({ query }) => query,
  handle: (app, { query }, { caller }) => getUsage(app, caller, query),
})

export const billingRoutes: readonly Route[] = [pricing, quotaRoute, usage]
