// What each role may do within a team, row by row. A change here is a decision.

import { expect, it } from 'vitest'
import type { Role } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { unrestrictedPolicy } from '../credentials/unrestricted-policy.ts'
import { type Action, authorize } from './authorize.ts'

function caller(kind: Caller['kind'], role: Role): Caller {
  return {
    kind,
    credentialId: 'cred_x',
    credentialName: 'x',
    userId: 'user_me',
    teamId: 'team_x',
    clientName: null,
    networkGroup: 1,
    plan: 'team',
    role,
    policy: unrestrictedPolicy,
  }
}

const table: [Action, { owner: boolean; admin: boolean; member: boolean; creator: boolean; key: boolean }][] =
  [
    ['me.read', { owner: true, admin: true, member: true, creator: true, key: false }],
    ['me.change', { owner: true, admin: true, member: true, creator: true, key: false }],
    ['key.create', { owner: true, admin: true, member: true, creator: true, key: false }],
    ['agent.change', { owner: true, admin: true, member: false, creator: true, key: false }],
    ['agent.revoke', { owner: true, admin: true, member: false, creator: true, key: false }],
    ['team.create', { owner: true, admin: true, member: true, creator: true, key: false }],
    ['team.change', { owner: true, admin: true, member: false, creator: false, key: false }],
    ['team.delete', { owner: true, admin: false, member: false, creator: false, key: false }],
    ['member.list', { owner: true, admin: true, member: true, creator: true, key: false }],
    ['member.changeRole', { owner: true, admin: false, member: false, creator: false, key: false }],
    ['member.leave', { owner: true, admin: true, member: true, creator: true, key: false }],
    ['member.remove', { owner: true, admin: true, member: false, creator: false, key: false }],
    ['leader.remove', { owner: true, admin: false, member: false, creator: false, key: false }],
    ['invite.create', { owner: true, admin: true, member: false, creator: false, key: false }],
    ['invite.revoke', { owner: true, admin: true, member: false, creator: false, key: false }],
    ['secret.put', { owner: true, admin: true, member: false, creator: false, key: true }],
    ['secret.delete', { owner: true, admin: true, member: false, creator: false, key: true }],
    ['secret.grantAll', { owner: true, admin: true, member: false, creator: false, key: false }],
    ['invite.accept', { owner: true, admin: true, member: true, creator: true, key: false }],
  ]

it.each(table)('the roles that may do %s are %j', (action, expected) => {
  const may = (who: Caller, createdBy: string | null = 'user_other') => {
    try {
      authorize(who, action, { createdBy })
      return true
    } catch (error) {
      expect(error).toMatchObject({ status: 403, code: 'forbidden' })
      return false
    }
  }
  expect({
    owner: may(caller('session', 'owner')),
    admin: may(caller('session', 'admin')),
    member: may(caller('session', 'member')),
    creator: may(caller('session', 'member'), 'user_me'),
    key: may(caller('key', 'owner'), 'user_me') || may(caller('oauth', 'owner'), 'user_me'),
  }).toEqual(expected)
  // A person who has left the team has no key of their own in it.
  expect(may({ ...caller('session', 'member'), userId: null }, null)).toBe(expected.member)
})
