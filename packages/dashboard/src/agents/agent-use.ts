// Reads from an agent how much of its policy's limits it uses.

import type { Contract } from '@berth/sdk'

/** Null where the service does not say. */
export type Use = { spentTodayCents: number | null; liveUnits: number | null }

export function usedBy(agent: Contract.Agent): Use {
  const told = agent as Contract.Agent & { spentTodayCents?: number; liveUnits?: number }
  return { spentTodayCents: told.spentTodayCents ?? null, liveUnits: told.liveUnits ?? null }
}
