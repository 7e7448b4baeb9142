// Every row of spec 4.1, 5 and 7, with the test that proves it. Finds a test that was renamed or removed.

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const rows: Record<string, [file: string, claim: string][]> = {
  'spec 4.1 GET /v1/auth/providers': [
    ['test/api/me.test.ts', 'GET /v1/auth/providers lists the configured providers without authentication'],
  ],
  'spec 4.1 GET /v1/me': [
    ['test/api/me.test.ts', 'returns the person, the teams, and what the server offers'],
    ['test/api/me.test.ts', 'accepts a session only: a key gets 403, and no credential 401'],
  ],
  'spec 4.1 PATCH /v1/me': [['test/api/me.test.ts', 'accepts a name of 1 and of 80 characters']],
  'spec 4.1 POST /v1/teams': [
    ['test/api/teams.test.ts', 'creates the requested team, owned by the caller and on their plan'],
    ['test/api/teams.test.ts', 'needs the Pro plan in any team that the caller owns'],
  ],
  'spec 4.1 PATCH /v1/teams/{id}': [['test/api/teams.test.ts', 'changes only the named fields']],
  'spec 4.1 DELETE /v1/teams/{id}': [
    ['test/api/teams.test.ts', 'ends the team for all members, with its keys, invitations and names'],
    ['test/api/teams.test.ts', 'changes a personal team, which cannot be deleted'],
    ['test/api/teams.test.ts', 'refuses to delete a team whose lock a create got first'],
  ],
  'spec 4.1 GET /v1/teams/{id}/members': [
    ['test/api/members.test.ts', 'lists every member in the order in which they joined'],
  ],
  'spec 4.1 PATCH /v1/teams/{id}/members/{userId}': [
    ['test/api/members.test.ts', 'can be changed by owners only'],
    ['test/api/members.test.ts', 'cannot be changed for the last owner, who cannot leave either'],
  ],
  'spec 4.1 DELETE /v1/teams/{id}/members/{userId}': [
    ['test/api/members.test.ts', 'lists the live keys of the member, which keep working'],
    [
      'test/coverage/roles.test.ts',
      'every member but the last owner may leave, and an admin cannot remove owners and admins',
    ],
  ],
  'spec 4.1 POST /v1/teams/{id}/invites': [
    ['test/api/invites.test.ts', 'is sent by mail, says what it is for, and makes a member once'],
    ['test/api/invites.test.ts', 'has the role of a member by default'],
  ],
  'spec 4.1 DELETE /v1/teams/{id}/invites/{inviteId}': [
    ['test/api/invites.test.ts', 'accepting or revoking an invitation is refused to another team'],
    [
      'test/api/invites.test.ts',
      'accepting and revoking an invitation at the same time has exactly one effect',
    ],
  ],
  'spec 4.1 GET /v1/invites/{token}': [
    ['test/api/invites.test.ts', 'returns 404 for any mistake in it, and is not repeated in the answer'],
    ['test/api/invites.test.ts', 'is possible within seven days'],
  ],
  'spec 4.1 POST /v1/invites/{token}/accept': [
    [
      'test/api/invites.test.ts',
      'is possible for its exact address only, and not for another tag, look-alike or domain',
    ],
  ],
  'spec 4.1 GET /v1/agents': [
    ['test/api/agents.test.ts', 'a connected client is listed as an agent, and not as a key'],
  ],

  'spec 5.1 keys': [
    ['src/domain/credentials/token.test.ts', 'a key is its prefix and 256 random bits'],
    ['test/api/credentials.test.ts', 'only the hash of a key is stored, and no key is logged'],
  ],
  'spec 5.2 tokens of clients': [
    ['test/api/agents.test.ts', 'a connected client is listed as an agent, and not as a key'],
  ],
  'spec 5.3 sessions': [
    ['test/api/agents.test.ts', 'cannot be created, changed or revoked by a key, also not by itself'],
  ],
  'spec 5.4 invitations': [
    [
      'test/api/invites.test.ts',
      'is possible for a signed-in person, and not for a key or from another site',
    ],
    ['test/coverage/routes.test.ts', 'the routes without authentication are those of a reviewed list'],
  ],
  'spec 5.5 401 and 403': [
    ['test/api/credentials.test.ts', 'a key whose policy has expired'],
    ['test/api/credentials.test.ts', 'a revoked key, from the next call on'],
    ['test/api/credentials.test.ts', 'a unit of another team (spec 5.5, S1)'],
  ],
  'spec 5.6 roles': [['test/coverage/roles.test.ts', 'each role is answered as the table says']],
  'spec 5.7 policies': [
    ['test/api/policies.test.ts', 'a key may not start or wake what it may not create (S13)'],
    [
      'test/api/policies.test.ts',
      'never run more units than the policy of their key allows, and the rest is refused',
    ],
  ],
  'spec 5.8 how a session is obtained': [
    ['test/api/sign-in.test.ts', 'works once, also for concurrent attempts'],
    [
      'test/api/sign-in-providers.test.ts',
      'accepts the answer of the provider only in the browser that began',
    ],
  ],

  'spec 7 the envelope and x-request-id': [
    ['test/api/http.test.ts', 'is generated for every response, and repeated in errors'],
    [
      'test/coverage/faults.deep.test.ts',
      'every call is answered with the error envelope, and reveals no internal detail',
    ],
  ],
  'spec 7 validation': [
    ['test/api/fuzz.test.ts', 'a body that the document forbids is always refused with 400'],
  ],
  'spec 7 unauthorized': [
    [
      'test/coverage/roles.test.ts',
      'an operation that takes a credential is refused without one, and the others are not',
    ],
  ],
  'spec 7 forbidden': [['test/api/teams.test.ts', 'returns 403, an unknown one 404, and neither is changed']],
  'spec 7 policy_violation': [['src/domain/policies/check.test.ts', 'policy_violation']],
  'spec 7 quota_exceeded, 402': [
    [
      'src/domain/units/admission/stop-beyond-limits.test.ts',
      'of zero refuses every create, and tells what was spent and when the day ends',
    ],
    [
      'src/domain/units/admission/stop-beyond-limits.test.ts',
      'stops twenty concurrent units before it is exceeded',
    ],
  ],
  'spec 7 quota_exceeded, 429': [
    [
      'test/api/rates-together.deep.test.ts',
      'allow 300 requests a minute for a key, with an exact retry-after',
    ],
  ],
  'spec 7 payment_required': [
    ['src/domain/units/admission/stop-beyond-limits.test.ts', 'of zero refuse every create with 402'],
  ],
  'spec 7 not_found': [['test/api/recipes.test.ts', 'returns 404 for an unknown recipe']],
  'spec 7 invalid_state': [
    ['src/domain/units/life.test.ts', 'a command in a stopped unit is refused with the last exit'],
  ],
  'spec 7 provider_error': [
    ['test/api/http.test.ts', 'has status 502 and code provider_error for a failure of the engine'],
  ],
  'spec 7.1 a number for sleep': [
    ['test/api/http.test.ts', 'with a number for sleep are refused with the string to send instead'],
  ],
  'spec 7.2 no front door': [
    ['test/api/recipes.test.ts', 'publishes the exposed port, and is refused for a recipe without one'],
  ],
  'spec 7.3 a sleep too long': [
    [
      'test/api/policies.test.ts',
      'a key may not set a longer sleep window for a whole stack than its policy allows',
    ],
  ],
  'spec 7.4 a team that cannot be deleted': [
    ['test/api/teams.test.ts', 'changes a personal team, which cannot be deleted'],
  ],
}

test.each(Object.entries(rows))('%s has a test', async (_row, claims) => {
  for (const [file, claim] of claims) {
    const source = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
    expect([file, claim, source.includes(claim)]).toEqual([file, claim, true])
  }
})
