// The columns of `meters` (store/meters.ts).

import type { Size } from '../../contract/policy.ts'
import type { Generated } from 'kysely'

export type MeterKind = 'compute' | 'volume'

export type MetersTable = {
  id: Generated<bigint>
  unit_id: string
  kind: MeterKind
  generation: number
  /** The host that the run is or was on. */
  host_id: string
  team_id: string
  /** The credential whose policy it counts against. */
  held_by: string
  size: Size
  price_nano_cents_per_hour: bigint
  counted_before: string
  started_at: Date
  billed_to: Date
  ended_at: Date | null
}
