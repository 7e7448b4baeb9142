// The columns of `hosts` (store/hosts.ts).

import type { ColumnType, Generated, GeneratedAlways } from 'kysely'
import type { GatewayFacts } from '../../contract/gateway-facts.ts'

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
  member_since: Generated<Date>
  gateway: ColumnType<GatewayFacts | null, string | null>
  certificates_end: Date | null
  destroys_units: Generated<boolean>
  version: string | null
  node_name: string | null
  node_uid: string | null
  cordoned: Generated<boolean>
}

/** A state that a host came to, whether it answers, what came of its certificates' renewal, or that its units are destroyed. */
export type HostEventKind = HostState | 'away' | 'back' | 'renewed' | 'not renewed' | 'emptied'

export type HostEventsTable = {
  id: GeneratedAlways<string>
  host_id: string
  at: Date
  event: HostEventKind
  reason: string | null
}
