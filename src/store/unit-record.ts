// A unit's row, and the record the domain sees of it.

import type { ColumnType, Kysely, Selectable } from 'kysely'
import type { Protocol } from '../contract/endpoint.ts'
import type { Env } from '../contract/env.ts'
import type { Copied } from '../contract/fork.ts'
import type { Size } from '../contract/policy.ts'
import type { StoppedReason, UnitState } from '../contract/states.ts'
import type { Healthcheck } from '../contract/unit-spec.ts'
import type { Database } from './db.ts'
import { type EndpointJson, type EndpointRecord, liveEndpoints, toEndpoint } from './endpoints.ts'
import { costNanoCents } from './meters.ts'

/** What of a spec is read back whole. Contents of files and values of secrets have tables of their own. */
export type StoredSpec = {
  entrypoint: string[] | null
  cmd: string[] | null
  env: Env
  ports: number[]
  databasePorts: { port: number; protocol: Protocol }[]
  expose: number | null
  volume: { mount: string; gb: number } | null
  files: { path: string; bytes: number }[]
  healthcheck: Healthcheck | null
}

/** How far a unit has come on its way to another state; null: nothing that would not be done again. */
export type Progress = { done: string[] }

export type StoredExit = { code: number; oomKilled: boolean; at: string }

export type UnitsTable = {
  id: string
  team_id: string
  stack_id: string
  name: string
  image: string
  size: Size
  spec: StoredSpec
  isolation: 'gvisor' | 'runc'
  network_group: number
  /** Its own for its whole life; null before the machine is made and after it is gone. */
  address: string | null
  /** The credential that last set it running: its policy's concurrency and spend are what it uses up. */
  held_by: string
  state: UnitState
  /** Counted up at each change of state. */
  revision: ColumnType<bigint, never, bigint>
  /** Counted up at each start (engine.ts). */
  generation: number
  stopped_reason: StoppedReason | null
  frozen: boolean
  /** Null before its machine was first ended in its sleep, and while that is under way. */
  memory_outcome: ColumnType<MemoryOutcome | null, MemoryOutcome | null | undefined, MemoryOutcome | null>
  /** Emptied by every change of state. */
  progress: ColumnType<Progress | null, string | null, string | null>
  sleep: string
  /** It sleeps and wakes with the others of its stack that do (spec 2.6). */
  sleeps_together: boolean
  sleeps_at: Date | null
  last_used_at: Date | null
  created_at: Date
  changed_at: Date
  started_at: Date | null
  last_exit: StoredExit | null
  error: string | null
  destroys_at: Date | null
  /** The unit it is a copy of. */
  forked_from: string | null
  /** The fork that made it, which takes it along until it has arrived. */
  fork_id: ColumnType<string | null, string | null | undefined, never>
  /** The first of the units that one create made together; null for one that was made by itself. */
  made_with: ColumnType<string | null, string | null | undefined, never>
  /** What it has of that unit; null for one that is no copy. */
  copied: ColumnType<Copied | null, Copied | null | undefined, Copied>
}

/** What became of its memory when its machine last ended in its sleep; `refused`: it was tried to keep it, in vain. */
export type MemoryOutcome = 'kept' | 'refused' | 'gone'

/** A unit as the domain sees it, with its stack's name, its live endpoints and what it has cost up to now. */
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
  lastExit: StoredExit | null
  error: string | null
  destroysAt: Date | null
  forkedFrom: string | null
  forkId: string | null
  madeWith: string | null
  copied: Copied | null
  endpoints: EndpointRecord[]
  costNanoCents: bigint
}

/** Every read of units begins here. `now`: how late it is for meters that are open. */
export function selectUnits(db: Kysely<Database>, now: Date) {
  return db
    .selectFrom('units')
    .innerJoin('stacks', 'stacks.id', 'units.stack_id')
    .selectAll('units')
    .select('stacks.name as stack_name')
    .select(costNanoCents(now).as('cost_nano_cents'))
    .select(liveEndpoints().as('endpoints'))
}

export function toRecord(
  row: Selectable<UnitsTable> & { stack_name: string; cost_nano_cents: bigint; endpoints: EndpointJson[] },
): UnitRecord {
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
    lastExit: row.last_exit,
    error: row.error,
    destroysAt: row.destroys_at,
    forkedFrom: row.forked_from,
    forkId: row.fork_id,
    madeWith: row.made_with,
    copied: row.copied,
    endpoints: row.endpoints.map(toEndpoint),
    costNanoCents: row.cost_nano_cents,
  }
}
