// The one place that decides which role may do what in a team (spec 5.3, 5.6). Which team owns a resource, and what a
// policy allows, is checked elsewhere.

import { forbidden } from '../../contract/errors.ts'
import { grantsEverySecret } from '../../contract/secret.ts'
import type { Role } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'

type Rule = {
  /** True: only people may, in a session; never a key or a token, which an agent holds. */
  session: boolean
  roles: readonly Role[]
  /** True: the creator of the resource may too, in any role. */
  creator: boolean
  /** True: a key or a token may too whose policy has every secret of the team. */
  everySecret?: boolean
}

const everyone = ['owner', 'admin', 'member'] as const
const leaders = ['owner', 'admin'] as const
const owners = ['owner'] as const

const rules = {
  'me.read': { session: true, roles: everyone, creator: false },
  'me.change': { session: true, roles: everyone, creator: false },
  'key.create': { session: true, roles: everyone, creator: false },
  'agent.connect': { session: true, roles: everyone, creator: false },
  'agent.change': { session: true, roles: leaders, creator: true },
  'agent.revoke': { session: true, roles: leaders, creator: true },
  'hosted.create': { session: true, roles: everyone, creator: false },
  'hosted.change': { session: true, roles: leaders, creator: true },
  'hosted.delete': { session: true, roles: leaders, creator: true },
  'team.create': { session: true, roles: everyone, creator: false },
  'team.change': { session: true, roles: leaders, creator: false },
  'team.delete': { session: true, roles: owners, creator: false },
  'member.list': { session: true, roles: everyone, creator: false },
  'member.changeRole': { session: true, roles: owners, creator: false },
  'member.leave': { session: true, roles: everyone, creator: false },
  'member.remove': { session: true, roles: leaders, creator: false },
  /** To remove an owner or an admin. Otherwise an admin could undo a decision that is reserved for owners. */
  'leader.remove': { session: true, roles: owners, creator: false },
  'payment.create': { session: true, roles: leaders, creator: false },
  'payment.list': { session: true, roles: leaders, creator: false },
  'invite.create': { session: true, roles: leaders, creator: false },
  'invite.revoke': { session: true, roles: leaders, creator: false },
  'secret.put': { session: true, roles: leaders, creator: false, everySecret: true },
  'secret.delete': { session: true, roles: leaders, creator: false, everySecret: true },
  /** To give a key or an agent the policy by which it may put and delete secrets too. */
  'secret.grantAll': { session: true, roles: leaders, creator: false },
  'invite.accept': { session: true, roles: everyone, creator: false },
} as const satisfies Record<string, Rule>

export type Action = keyof typeof rules

/** The part of a resource that the rules need. */
export type Resource = { createdBy: string | null }

/** Throws `forbidden`, with the role that is needed. */
export function authorize(caller: Caller, action: Action, resource?: Resource): void {
  const rule: Rule = rules[action]
  if (rule.everySecret && caller.kind !== 'session') {
    if (grantsEverySecret(caller.policy)) return
    throw forbidden(
      'Only an owner or admin of the team may do this, or a key whose policy has "*" in "allowedSecrets".',
    )
  }
  if (rule.session && caller.kind !== 'session') {
    throw forbidden('Only a signed-in person may do this, on the dashboard; a key or a token may not.')
  }
  if (rule.roles.includes(caller.role)) return
  if (rule.creator && caller.userId !== null && resource?.createdBy === caller.userId) return
  const who = rule.roles.join(' or ')
  throw forbidden(
    `Only ${rule.creator ? `its creator, or an ${who} of the team,` : `an ${who} of the team`} may do this.`,
  )
}
