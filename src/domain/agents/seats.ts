import type { Plan } from '../../store/teams.ts'

/** How many keys and OAuth clients a team may have at once. The contract leaves the numbers to us (spec 8). */
export const seatsOf: Readonly<Record<Plan, number>> = { hobby: 5, pro: 25, team: 100 }
