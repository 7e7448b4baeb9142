// GET /v1/events: what changes in a team, as it changes.

import { z } from 'zod'
import { agentSchema } from './agent.ts'
import { cents, strict } from './fields.ts'
import { unitSchema } from './unit.ts'

const named = z.string()

/** By name of the event. */
export const teamEventSchemas = {
  reset: strict({}).meta({ id: 'ResetEvent' }),
  unit: unitSchema,
  stack: strict({ id: named, name: named }).meta({ id: 'StackEvent' }),
  agent: agentSchema,
  gone: strict({ id: named }).meta({ id: 'GoneEvent' }),
  team: strict({ id: named }).meta({ id: 'TeamEvent' }),
  money: strict({ spentTodayCents: cents, creditBalanceCents: cents }).meta({ id: 'MoneyEvent' }),
} as const

export type TeamEvent = {
  [K in keyof typeof teamEventSchemas]: { event: K; data: z.infer<(typeof teamEventSchemas)[K]> }
}[keyof typeof teamEventSchemas]
