// The row of a unit, and the record that the domain gets.

import type { Kysely, RawBuilder, Selectable } from 'kysely'
import type { Copied } from '../contract/unit.ts'
import type { Metadata } from '../contract/metadata.ts'
import type { PortRules } from '../contract/port-host.ts'
import type { Size } from '../contract/policy.ts'
import type { StoppedReason, UnitState } from '../contract/states.ts'
import type { UnitEnd } from '../contract/time-to-live.ts'
import { type EgressRules, openEgress } from '../lib/egress/rules.ts'
import type { Database } from './schema.ts'
import { type EndpointJson, type EndpointRecord, liveEndpoints, toEndpoint } from './endpoints.ts'
import { costNanoCents } from './meters.ts'
import type {
  CreatedBy,
  MemoryOutcome,
  Progress,
  StoredExit,
  StoredSpec,
  UnitsTable,
} from './tables/unit-record.ts'

export type { MemoryOutcome, Progress, StoredExit, StoredSpec, UnitsTable } from './tables/unit-record.ts'

/** A unit as the domain sees it, with its stack's name, its live endpoints and its cost up to now. */
export type UnitRecord = {
  id: string
  teamId: string
  stackId: string
  stackName: string
  name: string
  image: string
  size: Size
  spec: StoredSpec
  isolation: 'gvisor' | 'runc'
  networkGroup: number
  hostId: string
  address: string | null
  heldBy: string
  state: UnitState
  revision: bigint
  generation: number
  stoppedReason: StoppedReason | null
  frozen: boolean
  memoryOutcome: MemoryOutcome | null
  progress: Progress | null
  sleep: string
  sleepsTogether: boolean
  sleepsAt: Date | null
  lastUsedAt: Date | null
  createdAt: Date
  changedAt: Date
  startedAt: Date | null
  runtime: string | null
  lastExit: StoredExit | null
  error: string | null
  destroysAt: Date | null
  forkedFrom: string | null
  forkId: string | null
  madeWith: string | null
  copied: Copied | null
  createdBy: CreatedBy | null
  egress: EgressRules
  egressVersion: number
  egressAppliedVersion: number
  egressAppliedAt: Date | null
  metadata: Metadata
  timeToLive: string | null
  atEnd: UnitEnd
  endsAt: Date | null
  /** Null: as for every unit. */
  portRules: PortRules | null
  /** Whether the engine is told the stacks of its units (store/egress.ts). */
  stackIsScope: boolean
  endpoints: EndpointRecord[]
  costNanoCents: bigint
}

/** Every read of units begins with this. `now` is the time up to which open meters count. */
export function selectUnits(db: Kysely<Database>, now: Date | RawBuilder<Date>) {
  return db
    .selectFrom('units')
    .innerJoin('stacks', 'stacks.id', 'units.stack_id')
    .selectAll('units')
    .select(['stacks.name as stack_name', 'stacks.is_scope as stack_is_scope'])
    .select(costNanoCents(now).as('cost_nano_cents'))
    .select(liveEndpoints().as('endpoints'))
}

/** What `selectUnits` returns. */
export type UnitRow = Selectable<UnitsTable> & {
  stack_name: string
  stack_is_scope: boolean
  cost_nano_cents: bigint
  endpoints: EndpointJson[]
}

export function toRecord(row: UnitRow): UnitRecord {
  return {
    id: row.id,
    teamId: row.team_id,
    stackId: row.stack_id,
    stackName: row.stack_name,
    name: row.name,
    image: row.image,
    size: row.size,
    spec: row.spec,
    isolation: row.isolation,
    networkGroup: row.network_group,
    hostId: row.host_id,
    address: row.address,
    heldBy: row.held_by,
    state: row.state,
    revision: row.revision,
    generation: row.generation,
    stoppedReason: row.stopped_reason,
    frozen: row.frozen,
    memoryOutcome: row.memory_outcome,
    progress: row.progress,
    sleep: row.sleep,
    sleepsTogether: row.sleeps_together,
    sleepsAt: row.sleeps_at,
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
    changedAt: row.changed_at,
    startedAt: row.started_at,
    runtime: row.runtime,
    lastExit: row.last_exit,
    error: row.error,
    destroysAt: row.destroys_at,
    forkedFrom: row.forked_from,
    forkId: row.fork_id,
    madeWith: row.made_with,
    copied: row.copied,
    createdBy: row.created_by,
    egress: row.egress ?? openEgress,
    egressVersion: row.egress_version,
    egressAppliedVersion: row.egress_applied_version,
    egressAppliedAt: row.egress_applied_at,
    metadata: row.metadata,
    timeToLive: row.time_to_live,
    atEnd: row.at_end,
    endsAt: row.ends_at,
    portRules: row.port_rules,
    stackIsScope: row.stack_is_scope,
    endpoints: row.endpoints.map(toEndpoint),
    costNanoCents: row.cost_nano_cents,
  }
}
