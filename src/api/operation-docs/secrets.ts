// Secrets of a team.

import type { OperationDoc } from './doc.ts'
import { ids, secret } from './values.ts'

const notAllowed =
  'Your role in the team does not allow it, or the policy of the key does not have `*` in `allowedSecrets`.'

export const secretDocs: Record<string, OperationDoc> = {
  secretList: {
    answer: 'Names, hosts and placeholders, and how many units bind each; never a value.',
    response: { secrets: [secret] },
  },
  secretPut: {
    answer: 'The secret as it is now, without its value, which units use from now on.',
    errors: {
      402: 'The team has as many secrets as it may: delete one first.',
      403: notAllowed,
    },
    request: { value: 'sk-proj-4f9a', hosts: ['api.openai.com'] },
    response: { secret },
  },
  secretDelete: {
    answer: 'The secret is gone, and so is its value. `unbound` are the units that had it.',
    errors: { 403: notAllowed },
    response: { ok: true, unbound: [{ id: ids.unit, name: 'web' }] },
  },
}
