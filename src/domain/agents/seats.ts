// The limit of agents by plan. The other limits of plans are in teams/plan-limits.ts.

import { quotaExceeded } from '../../contract/errors.ts'
import type { Plan } from '../../store/teams.ts'

/** How many keys and OAuth clients a team may have at once. Spec 8 leaves the numbers open. */
export const seatsOf: Readonly<Record<Plan, number>> = { hobby: 5, pro: 25, team: 100 }

/** Throws `quota_exceeded` where a plan has no room for one more. */
export function refuseBeyondSeats(plan: Plan, used: number): void {
  const max = seatsOf[plan]
  if (used < max) return
  const text = `The team's plan has room for ${max} keys and agents, and has ${used}; revoke one first.`
  throw quotaExceeded(text, { field: 'seats', used, max })
}
