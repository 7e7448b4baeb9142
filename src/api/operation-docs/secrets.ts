// Secrets of a team.

import type { OperationDoc } from './doc.ts'
import { free, unitBusy } from './units.ts'
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
  unitSecret: {
    answer: 'What the secret is for as of now, without its value, which the next request of the unit has.',
    cost: free,
    errors: {
      404: 'There is no such unit in your team, or it has no brokered secret of that name: one with `hosts` in its `env`.',
      409: unitBusy,
    },
    request: { value: 'sk-ant-oat01-4f9a', methods: ['POST'], paths: ['/v1/messages'] },
    response: {
      name: 'ANTHROPIC_API_KEY',
      hosts: ['api.anthropic.com'],
      methods: ['POST'],
      paths: ['/v1/messages'],
      placeholder: secret.placeholder,
    },
  },
  secretDelete: {
    answer: 'The secret is gone, and so is its value. `unbound` are the units that had it.',
    errors: { 403: notAllowed },
    response: { ok: true, unbound: [{ id: ids.unit, name: 'web' }] },
  },
}
