// Every row of spec 4.1, 5 and 7 beside the test that claims it. A test that is renamed or removed is missed here.

import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const rows: Record<string, [file: string, claim: string][]> = {
  'spec 4.1 GET /v1/auth/providers': [
    [
      'test/api/me.test.ts',
      'GET /v1/auth/providers has the providers that are configured, and is open to anybody',
    ],
  ],
  'spec 4.1 GET /v1/me': [
    ['test/api/me.test.ts', 'has the person, the teams, and what the service offers'],
    ['test/api/me.test.ts', 'is for sessions: a key gets 403, and nobody 401'],
  ],
  'spec 4.1 PATCH /v1/me': [['test/api/me.test.ts', 'takes 1 and 80 characters']],
  'spec 4.1 POST /v1/teams': [
    [
      'test/api/teams.test.ts',
      'is what was asked for, belongs to the person who made it, and is on their plan',
    ],
    ['test/api/teams.test.ts', 'takes the Pro plan in a team that one owns, whichever one acts in'],
  ],
  'spec 4.1 PATCH /v1/teams/{id}': [['test/api/teams.test.ts', 'is of the fields it names']],
  'spec 4.1 DELETE /v1/teams/{id}': [
    ['test/api/teams.test.ts', 'ends the team for everybody, and with it its keys, invitations and names'],
    ['test/api/teams.test.ts', 'of a personal team is possible, its deletion is not'],
    ['test/api/teams.test.ts', 'that comes after a create finds its unit'],
  ],
  'spec 4.1 GET /v1/teams/{id}/members': [
    ['test/api/members.test.ts', 'has everybody who belongs to the team, in the order in which they joined'],
  ],
  'spec 4.1 PATCH /v1/teams/{id}/members/{userId}': [
    ['test/api/members.test.ts', 'is changed by owners alone'],
    ['test/api/members.test.ts', 'of the last owner stays, and so does the last owner'],
  ],
  'spec 4.1 DELETE /v1/teams/{id}/members/{userId}': [
    ['test/api/members.test.ts', 'tells the live keys the member made, which go on'],
    [
      'test/coverage/roles.test.ts',
      'everybody may leave but the last owner, and no admin removes owners and admins',
    ],
  ],
  'spec 4.1 POST /v1/teams/{id}/invites': [
    ['test/api/invites.test.ts', 'comes by mail, says what it is for, and makes a member once'],
    ['test/api/invites.test.ts', 'is to be a member where no role is named'],
  ],
  'spec 4.1 DELETE /v1/teams/{id}/invites/{inviteId}': [
    ['test/api/invites.test.ts', 'by no one of another team’s leave: it is not theirs to revoke'],
    ['test/api/invites.test.ts', 'or revoked, when both happen at once'],
  ],
  'spec 4.1 GET /v1/invites/{token}': [
    ['test/api/invites.test.ts', 'is 404 whatever is wrong with it, and is not said again'],
    ['test/api/invites.test.ts', 'within seven days'],
  ],
  'spec 4.1 POST /v1/invites/{token}/accept': [
    ['test/api/invites.test.ts', 'by its address alone: another tag, look-alike or domain is somebody else'],
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
    ['test/api/invites.test.ts', 'by a person who is signed in, not by a key and not from another site'],
    ['test/coverage/routes.test.ts', 'what anyone may call is a list somebody agreed to'],
  ],
  'spec 5.5 401 and 403': [
    ['test/api/credentials.test.ts', 'a key whose policy has expired'],
    ['test/api/credentials.test.ts', 'a revoked key, from the next call on'],
    ['test/api/credentials.test.ts', 'a unit of another team (spec 5.5, S1)'],
  ],
  'spec 5.6 roles': [['test/coverage/roles.test.ts', 'every caller is answered as the table says']],
  'spec 5.7 policies': [
    ['test/api/policies.test.ts', 'S13: what a key may not make, it may not start or wake either'],
    [
      'test/api/policies.test.ts',
      'never run more than the policy of their key allows, at no instant, and the rest is refused',
    ],
  ],
  'spec 5.8 how a session is obtained': [
    ['test/api/sign-in.test.ts', 'works once, also when many try at the same time'],
    [
      'test/api/sign-in-providers.test.ts',
      'the answer of the provider works in the browser that asked alone',
    ],
  ],

  'spec 7 the envelope and x-request-id': [
    ['test/api/http.test.ts', 'every response has one of ours, and an error repeats it'],
    [
      'test/coverage/faults.test.ts',
      'every call is answered in the envelope, and tells nothing of the inside',
    ],
  ],
  'spec 7 validation': [['test/api/fuzz.test.ts', 'a body the document forbids is always 400']],
  'spec 7 unauthorized': [
    ['test/coverage/roles.test.ts', 'what takes a credential is refused without one, and the rest is not'],
  ],
  'spec 7 forbidden': [
    ['test/api/teams.test.ts', 'is 403, one that is nobody’s 404, and neither is changed'],
  ],
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
      'test/api/rates-together.test.ts',
      'let 300 requests a minute of a key pass, and each says truly when the next one will',
    ],
  ],
  'spec 7 payment_required': [
    ['src/domain/units/admission/stop-beyond-limits.test.ts', 'of zero refuse every create with 402'],
  ],
  'spec 7 not_found': [['test/api/recipes.test.ts', 'does not know what there is not']],
  'spec 7 invalid_state': [
    ['src/domain/units/life.test.ts', 'a command in a stopped unit is refused with the last exit'],
  ],
  'spec 7 provider_error': [['test/api/http.test.ts', 'what the engine cannot do is 502 provider_error']],
  'spec 7.1 a number for sleep': [
    ['test/api/http.test.ts', 'a number for sleep is refused with the string to send instead'],
  ],
  'spec 7.2 no front door': [
    ['test/api/recipes.test.ts', 'publishes a front door, and refuses where there is none'],
  ],
  'spec 7.3 a sleep too long': [
    ['test/api/policies.test.ts', 'a window for the whole stack is bounded as one for a unit'],
  ],
  'spec 7.4 a team that cannot be deleted': [
    ['test/api/teams.test.ts', 'of a personal team is possible, its deletion is not'],
  ],
}

test.each(Object.entries(rows))('%s has a test', async (_row, claims) => {
  for (const [file, claim] of claims) {
    const source = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8')
    expect([file, claim, source.includes(claim)]).toEqual([file, claim, true])
  }
})
