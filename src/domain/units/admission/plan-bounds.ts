// The most that a team's plan has room for. A policy may allow more, which then limits nothing: a person who chooses a
// policy is told so.

import { sizes } from '../../../contract/policy.ts'
import { toCents } from '../../../lib/money.ts'
import type { Plan } from '../../../store/teams.ts'
import { sizeNanoCentsPerHour } from '../../billing/prices.ts'
import { longestSleep } from '../../policies/check.ts'
import { diskGbOf } from '../../teams/plan-limits.ts'
import { machineSizes } from '../model/machine.ts'

const HOURS_OF_A_DAY = 24

export type PlanBounds = {
  plan: Plan
  /** For the disks and volumes of all units of the team together. */
  diskGb: number
  /** How many units fit that disk, all of them of the size with the smallest one. */
  units: number
  /** What the units that fit it can cost in a day. */
  centsADay: number
  /** Whether a unit may never sleep. */
  alwaysOn: boolean
}

export function boundsOf(plan: Plan): PlanBounds {
  const diskGb = diskGbOf[plan]
  const fitting = sizes.map((size) => diskGb / machineSizes[size].diskGb)
  const centsPerDay = sizes.map((size) => toCents(sizeNanoCentsPerHour[size]) * HOURS_OF_A_DAY)
  const costs = fitting.map((units, index) => units * (centsPerDay[index] ?? 0))
  return {
    plan,
    diskGb,
    units: Math.floor(Math.max(...fitting)),
    centsADay: Math.ceil(Math.max(...costs)),
    alwaysOn: longestSleep({ plan, sleepMax: 'never' }) === 'never',
  }
}
