// What a machine may reach, as the engine is told it and enforces it.

import type { EgressRules } from '../lib/egress/rules.ts'

/** `stack`: machines with the same value are siblings of one stack; null: of none. */
export type MachineEgress = EgressRules & { stack: string | null }
