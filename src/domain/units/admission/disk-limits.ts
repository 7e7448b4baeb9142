// Disk space promised to a team's units (decisions/disks-and-logs.md): a limit by its plan, for running, sleeping and
// stopped units alike. The engine limits what they actually use.

import type { Kysely } from 'kysely'
import type { App } from '../../../app.ts'
import { quotaExceeded } from '../../../contract/errors.ts'
import { type Size, sizes } from '../../../contract/policy.ts'
import { logLimitReached } from '../../../lib/limit-reached.ts'
import type { Database } from '../../../store/db.ts'
import { sumDiskGb } from '../../../store/active-units.ts'
import type { Plan } from '../../../store/teams.ts'
import { diskGbOf } from '../../teams/plan-limits.ts'
import { machineSizes } from '../model/machine.ts'

type Team = { teamId: string; plan: Plan }
type Wanted = { size: Size; volume?: { gb: number } | null | undefined }

export const sizeDiskGb = Object.fromEntries(
  sizes.map((size) => [size, machineSizes[size].diskGb]),
) as Record<Size, number>

export async function promisedDiskGb(db: Kysely<Database>, teamId: string): Promise<number> {
  return await sumDiskGb(db, { teamId, sizeDiskGb })
}

/** Throws unless this much more may be promised. `diskGb`: promised now, read with the team locked. */
export function checkDisk(
  app: App,
  { teamId, plan, diskGb: used }: Team & { diskGb: number },
  wanted: Wanted[],
): void {
  const asked = wanted.reduce((sum, { size, volume }) => sum + sizeDiskGb[size] + (volume?.gb ?? 0), 0)
  const max = diskGbOf[plan]
  if (used + asked <= max) return
  logLimitReached(app, { bound: 'disk of the plan', by: teamId })
  throw quotaExceeded(
    `The plan allows ${max} GB for the disks and volumes of the team's units together. They are ${used} GB, stopped and sleeping units included, and this would add ${asked} GB. Destroy units, or ask for smaller ones.`,
    { field: 'disk', usedGb: used, maxGb: max, askedGb: asked },
  )
}

/** Refuses a volume that could never be filled on this host. */
export function checkVolumes(
  app: App,
  { teamId }: Pick<Team, 'teamId'>,
  { wanted, teamDiskGb }: { wanted: Wanted[]; teamDiskGb: number },
): void {
  const largest = Math.max(0, ...wanted.map(({ volume }) => volume?.gb ?? 0))
  if (largest <= teamDiskGb) return
  logLimitReached(app, { bound: 'disk of one team on this host', by: teamId })
  throw quotaExceeded(
    `The units of a team may fill ${teamDiskGb} GB on this host, so a volume of ${largest} GB never fits. Ask for at most ${teamDiskGb} GB.`,
    { field: 'volume', maxGb: teamDiskGb, askedGb: largest },
  )
}
