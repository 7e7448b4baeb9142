// The limit of agents by plan. The other limits of plans are in teams/plan-limits.ts.

import type { Plan } from '../../store/teams.ts'

/** How many keys and OAuth clients a team may have at once. Spec 8 leaves the numbers open. */
export const seatsOf: Readonly<Record<Plan, number>> = { hobby: 5, pro: 25, team: 100 }
