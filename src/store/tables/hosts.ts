// The columns of `hosts` (store/hosts.ts).

import type { ColumnType, Generated } from 'kysely'

export type HostState = 'joining' | 'ready' | 'draining' | 'lost' | 'removed'

export type HostsTable = {
  id: string
  name: string
  instance: string | null
  address: string | null
  region: string | null
  state: HostState
  state_since: Generated<Date>
  away_since: Date | null
  reason: string | null
  epoch: Generated<number>
  boot: string | null
  classes: ColumnType<string[] | null, string | null>
  cpus: number | null
  memory_mb: number | null
  available_mb: number | null
  clock_offset_ms: number | null
}
