// What this process has read of the units that calls used lately, for the checks that come before a use is recorded: with it
// the use can be recorded in the statement that reads the unit (use-unit.ts).

import { teamSecretsOf } from '../../../contract/env.ts'
import type { EgressRules } from '../../../lib/egress/rules.ts'
import type { UnitRecord } from '../../../store/unit-record.ts'

/** `teamId` never changes; the others may have by now. */
export type Used = { teamId: string; egress: EgressRules; teamSecrets: string[] }

export type UsedLately = {
  find(id: string): Used | null
  /** Returns what is known now. A unit that sleeps together with others is not kept: its use concerns them, too. */
  note(unit: UnitRecord): Used
  forget(id: string): void
}

/** Beyond this number, the one that was noted longest ago is forgotten. */
const MAX_USED = 10_000

export function createUsedLately(): UsedLately {
  const used = new Map<string, Used>()
  return {
    find: (id) => used.get(id) ?? null,
    note: ({ id, teamId, egress, spec, sleepsTogether }) => {
      const noted = { teamId, egress, teamSecrets: teamSecretsOf(spec.env) }
      // Moves it to the end of the order.
      used.delete(id)
      if (!sleepsTogether) used.set(id, noted)
      const [oldest] = used.keys()
      if (used.size > MAX_USED && oldest !== undefined) used.delete(oldest)
      return noted
    },
    forget: (id) => void used.delete(id),
  }
}
