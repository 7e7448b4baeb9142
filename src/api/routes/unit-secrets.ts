// The brokered secrets of one unit (decisions/brokered-secrets.md). No answer has a value.

import { z } from 'zod'
import { secretNameSchema, unitSecretPutSchema, unitSecretSchema } from '../../contract/secret.ts'
import { putSecretOfUnit } from '../../domain/units/secrets.ts'
import { jsonBody } from '../http/body.ts'
import { defineRoute, pathId, type Route } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

const named = z.strictObject({
  id: pathId,
  name: z.string().min(1).max(256).describe('The name of the secret.'),
})

const put = defineRoute({
  ...aboutUnit,
  method: 'PUT',
  path: '/v1/units/{id}/secrets/{name}',
  summary: 'Replace a brokered secret of a unit while it runs',
  description:
    'For a secret that the unit got with `hosts`: its requests have the new value once this answers. The unit is not restarted, and its ' +
    'placeholder stays. Wakes nothing.',
  action: 'unit.secret',
  kind: 'change',
  params: named,
  body: jsonBody(unitSecretPutSchema),
  response: unitSecretSchema,
  errors: [404, 409, 413, 415, 502],
  record: ({ params: { name }, body: { hosts, methods, paths } }) => ({
    ...(secretNameSchema.safeParse(name).success && { secret: name }),
    ...(hosts && { hosts }),
    ...(methods && { methods }),
    ...(paths && { paths }),
  }),
  handle: (app, { params, body }, { caller }) => putSecretOfUnit(app, caller, params.id, params.name, body),
})

export const unitSecretRoutes: readonly Route[] = [put]
