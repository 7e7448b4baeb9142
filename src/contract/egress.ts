// What a unit may reach: its rules, and the rules that bound those of a credential's or a team's units (spec 9.4,
// decisions/egress.md). The forms of an entry are in lib/egress/entry.ts.

import { z } from 'zod'
import {
  canonicalEgressEntry,
  formatEgressEntry,
  InvalidEgressEntry,
  isUnitName,
  parseDeniedRange,
  parseEgressEntry,
} from '../lib/egress/entry.ts'
import { egressModes, type EgressRules, openEgress, siblingScopes } from '../lib/egress/rules.ts'
import { portSchema } from './endpoint.ts'
import { strict, text, timestamp } from './fields.ts'
import { limits } from './limits.ts'

/** A list without doubles. `fault`: what is wrong with an entry, or null; `written`: one that is right, as it is stored. */
function entriesOf(fault: (value: string) => string | null, written: (value: string) => string) {
  const entry = text(limits.egressEntryLength)
    .superRefine((value, context) => {
      const message = fault(value)
      if (message !== null) context.addIssue({ code: 'custom', message })
    })
    .overwrite((value) => (fault(value) === null ? written(value) : value))
  return z
    .array(entry)
    .max(limits.egressEntries, {
      error: `must have at most ${limits.egressEntries} entries`,
      abort: true,
    })
    .overwrite((entries) => [...new Set(entries)])
}

const allow = entriesOf(faultOf, canonicalEgressEntry)
const deny = entriesOf(faultOfDenied, (value) => formatEgressEntry(parseDeniedRange(value)))

const described = {
  mode: 'Which public hosts: `open` all, `listed` those of `allow`, `none` no host.',
  allow:
    'For `listed`: names such as `api.github.com`, `*.pythonhosted.org` (names below it) and `github.com:22`, ranges such as `203.0.113.0/24` and `203.0.113.7/32:5432`, and presets such as `preset:npm`. A name without a port means ports 80 and 443. Names of units, below `internal`, are refused: `siblings` decides them.',
  deny: 'Ranges such as `203.0.113.0/24` or addresses that are refused, whatever else allows them. Absent: none.',
  siblings: 'Which units of the team: `team` all, `stack` those of its stack, `none` no unit.',
}

type Given = { mode?: EgressRules['mode'] | undefined; allow?: string[] | undefined }

/** `allow` says something in one mode only, and that mode says nothing without it. */
function checkAllow({ mode, allow: entries }: Given, context: z.RefinementCtx): void {
  if (mode === 'listed' && entries === undefined) {
    const message = 'is required with the mode "listed"; to allow no public host send the mode "none"'
    context.addIssue({ code: 'custom', path: ['allow'], message })
  }
  if (mode !== 'listed' && entries !== undefined && entries.length > 0) {
    const message =
      mode === undefined
        ? 'is for the mode "listed": send that mode too'
        : `says nothing in the mode "${mode}": send the mode "listed", or leave it out`
    context.addIssue({ code: 'custom', path: ['allow'], message })
  }
}

/** Rules in a request. An omitted field gets the bound of the credential and its team. */
export const egressAskedSchema = strict({
  mode: z
    .enum(egressModes)
    .optional()
    .describe(`${described.mode} Default: that of the credential's bound, with its \`allow\`.`),
  allow: allow.optional().describe(described.allow),
  deny: deny.optional().describe(`${described.deny} Default: that of the credential's bound.`),
  siblings: z
    .enum(siblingScopes)
    .optional()
    .describe(`${described.siblings} Default: that of the credential's bound.`),
})
  .superRefine(checkAllow)
  .meta({ id: 'EgressAsked' })
export type EgressAsked = z.infer<typeof egressAskedSchema>

/** The bound on rules of a credential or a team. An omitted field has no bound. */
export const egressBoundSchema = strict({
  mode: z.enum(egressModes).default(openEgress.mode).describe(described.mode),
  allow: allow.default([]).describe(described.allow),
  deny: deny.min(1, 'must have an entry, or be left out').optional().describe(described.deny),
  siblings: z.enum(siblingScopes).default(openEgress.siblings).describe(described.siblings),
})
  .superRefine(checkAllow)
  .meta({ id: 'EgressBound' })

export const egressSchema = strict({
  mode: z.enum(egressModes).describe(described.mode),
  allow: z.array(z.string()).describe(described.allow),
  deny: z.array(z.string()).optional().describe(described.deny),
  siblings: z.enum(siblingScopes).describe(described.siblings),
}).meta({ id: 'Egress' })

/** The rules of a unit, as the unit shows them. */
export const unitEgressSchema = strict({
  ...egressSchema.shape,
  version: z
    .int()
    .describe('Counts the changes of the rules and of brokered secrets; 0 for a unit without any.'),
}).meta({ id: 'UnitEgress' })

/** GET /v1/units/{id}/egress. */
export const egressInForceSchema = strict({
  ...unitEgressSchema.shape,
  appliedAt: timestamp.nullable().describe('Since when this version is in force; null until it is.'),
}).meta({ id: 'EgressInForce' })
export type EgressInForce = z.infer<typeof egressInForceSchema>

/** PUT /v1/units/{id}/egress. */
export const egressSetSchema = strict({
  ...egressInForceSchema.shape,
  previous: egressSchema.describe('The rules before this call.'),
}).meta({ id: 'EgressSet' })
export type EgressSet = z.infer<typeof egressSetSchema>

/** POST /v1/units/{id}/egress/check. */
export const egressCheckSchema = strict({
  host: text(limits.egressEntryLength)
    .min(1, 'must be a host name or an IPv4 address')
    .describe('A host name, an IPv4 address, or the internal host of a unit.'),
  port: portSchema,
}).meta({ id: 'EgressCheck' })
export type EgressCheck = z.infer<typeof egressCheckSchema>

export const egressDecisionSchema = strict({
  decision: z.enum(['allowed', 'refused']),
  rule: z
    .string()
    .nullable()
    .describe('The entry that allows it; null for a refusal, and where no entry is needed.'),
  reason: z.string().describe('Why, as a sentence; for a refusal also what to do.'),
}).meta({ id: 'EgressDecision' })
export type EgressDecision = z.infer<typeof egressDecisionSchema>

const OF_UNITS =
  'is a name of units, which `allow` does not decide: leave it out, and send "siblings" with "team", "stack" or "none"'

function faultOf(value: string): string | null {
  const isUnits = () => parseEgressEntry(value).some((each) => each.kind === 'name' && isUnitName(each.name))
  return messageOf(() => (isUnits() ? OF_UNITS : null))
}

function faultOfDenied(value: string): string | null {
  return messageOf(() => void parseDeniedRange(value))
}

/** What `check` says, also as InvalidEgressEntry; null if it says nothing. */
function messageOf(check: () => unknown): string | null {
  try {
    const said = check()
    return typeof said === 'string' ? said : null
  } catch (error) {
    if (error instanceof InvalidEgressEntry) return error.message
    throw error
  }
}
