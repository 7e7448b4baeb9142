// The bounds of what units may reach: of a credential's policy, and of its team (decisions/egress.md). Pure: throws or
// returns. A refusal says what was too wide and whom to ask, because it is often an agent that reads it.

import type { EgressAsked } from '../../contract/egress.ts'
import { policyViolation, validation } from '../../contract/errors.ts'
import type { Policy } from '../../contract/policy.ts'
import { type EgressRules, isWithin, narrowest } from '../../lib/egress/rules.ts'

type Bounds = { policy: Pick<Policy, 'egress'>; teamEgress: EgressRules | null }

/** The most that a unit of the credential may reach. */
export function egressBound({ policy, teamEgress }: Bounds): EgressRules {
  return teamEgress === null ? policy.egress : narrowest(policy.egress, teamEgress)
}

/** Returns the rules that a caller asks for, with the bound for what was left out. */
export function askedEgress(bounds: Bounds, asked: EgressAsked | undefined): EgressRules {
  const bound = egressBound(bounds)
  if (asked === undefined) return bound
  const { mode, allow = [], deny = bound.deny ?? [], siblings = bound.siblings } = asked
  const { deny: _, ...wide } = mode === undefined ? { ...bound, siblings } : { mode, allow, siblings }
  return { ...wide, ...(deny.length > 0 && wide.mode !== 'none' && { deny }) }
}

/** Throws `policy_violation` for rules that allow more than the credential or its team. */
export function checkEgress({ policy, teamEgress }: Bounds, asked: EgressRules): void {
  refuseWider(asked, policy.egress, 'the policy of this credential allows')
  if (teamEgress !== null) refuseWider(asked, teamEgress, 'the team allows')
}

/** The same for the credential that a unit runs for, which may be another one than the caller's. */
export function checkHolder(holder: Policy['egress'], asked: EgressRules): void {
  refuseWider(asked, holder, 'the policy of the key or agent that the unit runs for allows')
}

/** The same for a caller of a unit that is there: it must not reach by it what it could not by one of its own. */
export function checkUse({ egress: allowed }: Pick<Policy, 'egress'>, unit: EgressRules): void {
  if (isWithin(unit, allowed)) return
  const bound = `the policy of this credential allows ${describe(allowed)}`
  throw policyViolation(
    `This unit reaches ${beyond(unit, allowed)}, and ${bound}, also by what runs in other units. Use a unit that reaches no more, or ask an owner or admin of the team to allow more.`,
    { field: 'egress', asked: unit, allowed },
  )
}

/** Throws for units of one create that are made to work together and could not reach each other. */
export function checkTogether(bounds: Bounds, rules: EgressRules, asked: EgressAsked | undefined): void {
  if (rules.siblings !== 'none') return
  const what = 'the units of this recipe reach each other'
  if (asked?.siblings === 'none') {
    throw validation([{ path: 'egress.siblings', message: `must be "stack" or "team": ${what}` }])
  }
  throw policyViolation(
    `No unit of this credential may reach another one, and ${what}. Ask an owner or admin of the team to allow siblings of a stack.`,
    { field: 'egress', asked: { ...rules, siblings: 'stack' }, allowed: egressBound(bounds) },
  )
}

function refuseWider(asked: EgressRules, allowed: EgressRules, whose: string): void {
  if (isWithin(asked, allowed)) return
  throw policyViolation(
    `The unit would reach ${beyond(asked, allowed)}, and ${whose} ${describe(allowed)}. Ask for less in "egress", or ask an owner or admin of the team to allow more.`,
    { field: 'egress', asked, allowed },
  )
}

/** Names of a long list that a message shows. */
const SHOWN = 5

function beyond(asked: EgressRules, allowed: EgressRules): string {
  const hosts = { ...asked, siblings: 'none' } as const
  if (isWithin(hosts, allowed)) return siblingsText(asked)
  if (asked.mode !== 'listed') return hostsText(asked)
  const tooMuch = asked.allow.filter((entry) => !isWithin({ ...hosts, allow: [entry] }, allowed))
  return tooMuch.length === asked.allow.length ? hostsText(asked) : listed(tooMuch)
}

function describe(rules: EgressRules): string {
  return `${hostsText(rules)} and ${siblingsText(rules)}`
}

function hostsText({ mode, allow, deny = [] }: EgressRules): string {
  const but = deny.length > 0 ? `, but not ${listed(deny)},` : ''
  if (mode === 'listed') return listed(allow) + but
  return mode === 'open' ? `every public host${but}` : 'no public host'
}

function siblingsText({ siblings }: EgressRules): string {
  if (siblings === 'none') return 'no other unit'
  return siblings === 'stack' ? 'the units of its stack' : 'every unit of the team'
}

function listed(entries: readonly string[]): string {
  if (entries.length === 0) return 'no public host'
  const more = entries.length - SHOWN
  return `${entries.slice(0, SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
