// Who may do what within a team (spec 5.3, 5.6): the one place that decides. Whether something is the team's at all,
// and whether a policy allows it, is decided elsewhere.

import { forbidden } from '../../contract/errors.ts'
import type { Role } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'

type Rule = {
  /** Of people alone: never with a key or a token, which an agent holds. */
  session: boolean
  roles: readonly Role[]
  /** Also whoever made what it is about, in any role. */
  creator: boolean
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
  'team.create': { session: true, roles: everyone, creator: false },
  'team.change': { session: true, roles: leaders, creator: false },
  'team.delete': { session: true, roles: owners, creator: false },
  'member.list': { session: true, roles: everyone, creator: false },
  'member.changeRole': { session: true, roles: owners, creator: false },
  'member.leave': { session: true, roles: everyone, creator: false },
  'member.remove': { session: true, roles: leaders, creator: false },
  /** An owner or an admin: else one admin could undo what only an owner decides. */
  'leader.remove': { session: true, roles: owners, creator: false },
  'payment.create': { session: true, roles: leaders, creator: false },
  'payment.list': { session: true, roles: leaders, creator: false },
  'invite.create': { session: true, roles: leaders, creator: false },
  'invite.revoke': { session: true, roles: leaders, creator: false },
  'invite.accept': { session: true, roles: everyone, creator: false },
} as const satisfies Record<string, Rule>

export type Action = keyof typeof rules

/** What an action is about, as far as a rule asks. */
export type Resource = { createdBy: string | null }

/** Throws `forbidden`, with what it would take. */
export function authorize(caller: Caller, action: Action, resource?: Resource): void {
  const rule: Rule = rules[action]
  if (rule.session && caller.kind !== 'session') {
    throw forbidden('Only a person who is signed in may do this, on the dashboard; a key or a token may not.')
  }
  if (rule.roles.includes(caller.role)) return
  if (rule.creator && caller.userId !== null && resource?.createdBy === caller.userId) return
  const who = rule.roles.join(' or ')
  throw forbidden(
    `Only ${rule.creator ? `who made it, or an ${who} of the team,` : `an ${who} of the team`} may do this.`,
  )
}
