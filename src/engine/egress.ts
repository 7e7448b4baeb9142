// What a machine may reach, as the engine enforces it.

import type { EgressRules } from '../lib/egress/rules.ts'
import type { BrokeredSecret } from '../lib/egress/secrets.ts'

export type { BrokeredSecret } from '../lib/egress/secrets.ts'

/**
 * `stack`: machines with the same value are siblings of one stack; null: of none. `secrets`: those whose values are put
 * into this machine's requests; it has the placeholders.
 */
export type MachineEgress = EgressRules & { stack: string | null; secrets: BrokeredSecret[] }
