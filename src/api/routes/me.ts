// The account of the signed-in person (spec 4.1).

import { meChangedSchema, meChangeSchema, meSchema, providerListSchema } from '../../contract/me.ts'
import { listProviders } from '../../domain/providers/list.ts'
import { changeMe } from '../../domain/me/change.ts'
import { getMe } from '../../domain/me/get.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineOpenRoute, defineRoute, noParams, noQuery, type Route } from '../route.ts'

const aboutMe = {
  noun: 'account',
  params: noParams,
  query: noQuery,
  target: () => null,
  record: () => null,
} as const

const providers = defineOpenRoute({
  ...aboutMe,
  method: 'GET',
  path: '/v1/auth/providers',
  summary: 'List the providers people can sign in with',
  action: 'provider.list',
  kind: 'read',
  body: noBody,
  response: providerListSchema,
  errors: [],
  handle: async (app) => ({ providers: listProviders(app.config) }),
})

export const meRoute = defineRoute({
  ...aboutMe,
  method: 'GET',
  path: '/v1/me',
  summary: 'Show who is signed in, and their teams',
  description: 'Needs a session.',
  action: 'me.read',
  kind: 'read',
  body: noBody,
  response: meSchema,
  errors: [],
  allow: 'me.read',
  handle: (app, _input, { caller }) => getMe(app, caller),
})

const change = defineRoute({
  ...aboutMe,
  method: 'PATCH',
  path: '/v1/me',
  summary: 'Change your name',
  description: 'Needs a session.',
  action: 'me.change',
  kind: 'change',
  body: jsonBody(meChangeSchema),
  response: meChangedSchema,
  errors: [413, 415],
  allow: 'me.change',
  record: ({ body }) => body,
  handle: (app, { body }, { caller }) => changeMe(app, caller, body),
})

export const meRoutes: readonly Route[] = [providers, meRoute, change]
