// GET /v1/events: what changes in a team, as it changes.

import { z } from 'zod'
import { agentSchema } from './agent.ts'
import { cents, queryFlag, strict, timestamp } from './fields.ts'
import { unitSchema } from './unit.ts'

const named = z.string()

export const eventsQuerySchema = strict({
  changes: queryFlag.describe('Whether to send `change`, a sentence for each call that changed something.'),
})

/** By name of the event. */
export const teamEventSchemas = {
  reset: strict({}).meta({ id: 'ResetEvent' }),
  unit: unitSchema,
  stack: strict({ id: named, name: named }).meta({ id: 'StackEvent' }),
  agent: agentSchema,
  gone: strict({ id: named }).meta({ id: 'GoneEvent' }),
  team: strict({ id: named }).meta({ id: 'TeamEvent' }),
  host: strict({
    id: named,
    state: z
      .enum(['ready', 'draining', 'away', 'lost', 'removed'])
      .describe(
        '`away`: it does not answer, and its units cannot be used. `lost`: they have lost their runs.',
      ),
    since: timestamp.describe('Since when it is in that state.'),
  }).meta({ id: 'HostEvent' }),
  process: strict({
    unitId: named,
    id: named,
    tag: z.string().nullable(),
    state: z.enum(['exited', 'lost']),
    exitCode: z.int().nullable().describe('128 + n for signal n; null if it was lost.'),
  }).meta({ id: 'ProcessEvent' }),
  change: strict({
    id: named.describe('Of the event of the audit log, which has the whole call.'),
    at: timestamp.describe('When the call arrived.'),
    action: named,
    target: z.string().nullable(),
    status: z.int(),
    sentence: z
      .string()
      .describe('Who did what, as `berth audit` says it. Callers sent parts of it: show it as text.'),
  }).meta({ id: 'ChangeEvent' }),
  money: strict({ spentTodayCents: cents, creditBalanceCents: cents }).meta({ id: 'MoneyEvent' }),
} as const

export type TeamEvent = {
  [K in keyof typeof teamEventSchemas]: { event: K; data: z.infer<(typeof teamEventSchemas)[K]> }
}[keyof typeof teamEventSchemas]
