// What a machine may reach, as the engine enforces it.

import type { EgressRules } from '../lib/egress/rules.ts'
import type { BrokeredSecret } from '../lib/egress/secrets.ts'
import type { MachineSeen } from '../lib/egress/seen.ts'

/** Is awaited before the next call. */
export type OnSeen = (lines: MachineSeen[]) => Promise<void>

export type { BrokeredSecret } from '../lib/egress/secrets.ts'

/**
 * `stack`: machines with the same value are siblings of one stack; null: of none. `secrets`: those whose values are put
 * into this machine's requests; it has the placeholders.
 */
export type MachineEgress = EgressRules & { stack: string | null; secrets: BrokeredSecret[] }
