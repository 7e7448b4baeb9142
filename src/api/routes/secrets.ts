// Secrets of a team, which its units use and do not hold (decisions/brokered-secrets.md). No answer has a value.

import { z } from 'zod'
import {
  secretAnswerSchema,
  secretDeletedSchema,
  secretListSchema,
  secretNameSchema,
  secretPutSchema,
} from '../../contract/secret.ts'
import { deleteSecretOfTeam } from '../../domain/secrets/delete.ts'
import { listSecretsOfTeam } from '../../domain/secrets/list.ts'
import { putSecretOfTeam } from '../../domain/secrets/put.ts'
import { jsonBody, noBody } from '../http/body.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'

/** A name that cannot be is refused with a sentence by PUT, so it is read here as it came. */
const anyName = z.strictObject({ name: z.string().min(1).max(256).describe('The name of the secret.') })
type Named = { params: { name: string } }

const list = defineRoute({
  method: 'GET',
  path: '/v1/secrets',
  noun: 'secret',
  summary: "List the team's secrets, without values",
  description: 'Those that the caller may bind to units: all for a person, those of the policy for a key.',
  action: 'secret.list',
  kind: 'read',
  params: noParams,
  query: noQuery,
  body: noBody,
  response: secretListSchema,
  errors: [],
  target: () => null,
  record: () => null,
  handle: (app, _input, { caller }) => listSecretsOfTeam(app, caller),
})

const aboutSecret = {
  path: '/v1/secrets/{name}',
  noun: 'secret',
  kind: 'change',
  params: anyName,
  query: noQuery,
  target: ({ params: { name } }: Named) => (secretNameSchema.safeParse(name).success ? name : null),
} as const

const put = defineRoute({
  ...aboutSecret,
  method: 'PUT',
  summary: 'Make a secret of the team, or replace its value',
  description:
    'Units bind it with `{ "teamSecret": NAME }` in `env` and get a placeholder. ' +
    'The value is put into the headers of their requests to the hosts of the secret. Answers once units that run use the new value; they are not restarted. For owners and admins, ' +
    'and for keys whose policy has `*` in `allowedSecrets`.',
  action: 'secret.put',
  body: jsonBody(secretPutSchema),
  response: secretAnswerSchema,
  errors: [402, 404, 413, 415],
  record: ({ body: { hosts } }) => ({ hosts }),
  handle: (app, { params, body }, { caller }) => putSecretOfTeam(app, caller, params.name, body),
})

const remove = defineRoute({
  ...aboutSecret,
  method: 'DELETE',
  summary: 'Delete a secret of the team',
  description:
    'Units that bind it run on, but their placeholder is worth nothing. The variable is gone at their next start. ' +
    'For the same callers as PUT.',
  action: 'secret.delete',
  body: noBody,
  response: secretDeletedSchema,
  errors: [404],
  record: () => ({}),
  outcome: ({ unbound }) => (unbound.length === 0 ? {} : { added: { unbound: unbound.map(({ id }) => id) } }),
  handle: (app, { params }, { caller }) => deleteSecretOfTeam(app, caller, params.name),
})

export const secretRoutes: readonly Route[] = [list, put, remove]
