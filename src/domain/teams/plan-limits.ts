// The limits of each plan: teams, members and disks. The number of agents is in agents/seats.ts.

import { quotaExceeded } from '../../contract/errors.ts'
import type { Plan } from '../../store/teams.ts'

/** From the smallest plan to the largest. */
export const planOrder = ['hobby', 'pro', 'team'] as const satisfies Plan[]

/** What a refusal for want of a plan says to do. */
export const howPlansChange = 'the operator of the service sets it with "npm run team"'

/** How many teams a person may own besides the personal one. Spec 8 leaves the numbers open. */
export const teamsOf: Readonly<Record<Plan, number>> = { hobby: 0, pro: 5, team: 50 }

/** How many members a team may have. Spec 8 leaves the numbers open. */
export const memberSeatsOf: Readonly<Record<Plan, number>> = { hobby: 1, pro: 10, team: 100 }

/** How large the disks and volumes of all units of a team may be together (decisions/disks-and-logs.md). */
export const diskGbOf: Readonly<Record<Plan, number>> = { hobby: 600, pro: 3000, team: 30_000 }

/** Throws unless one more member fits, beside members and invited people. Call it with the team locked. */
export function checkMemberSeats(plan: Plan, used: number): void {
  const max = memberSeatsOf[plan]
  if (used < max) return
  throw quotaExceeded(
    `The team's plan has room for ${max} members, and ${used} belong to it or are invited; remove one first.`,
    { field: 'members', used, max },
  )
}
