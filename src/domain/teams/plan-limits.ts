import { quotaExceeded } from '../../contract/errors.ts'
import type { Plan } from '../../store/teams.ts'

/** From the narrowest plan to the widest. */
export const planOrder = ['hobby', 'pro', 'team'] as const satisfies Plan[]

/** How many teams a person may own beside his personal one. The contract leaves the numbers to us (spec 8). */
export const teamsOf: Readonly<Record<Plan, number>> = { hobby: 0, pro: 5, team: 50 }

/** How many members a team may have. The contract leaves the numbers to us (spec 8). */
export const memberSeatsOf: Readonly<Record<Plan, number>> = { hobby: 1, pro: 10, team: 100 }

/** What the disks and volumes of a team's units may be together (decision 0069). */
export const diskGbOf: Readonly<Record<Plan, number>> = { hobby: 600, pro: 3000, team: 30_000 }

/** Whether one more has room beside those who are members or invited. Ask with the team locked. */
export function checkMemberSeats(plan: Plan, used: number): void {
  const max = memberSeatsOf[plan]
  if (used < max) return
  throw quotaExceeded(
    `The team's plan has room for ${max} members, and ${used} belong to it or are invited; remove one first.`,
    { field: 'members', used, max },
  )
}
