// The row of a unit, and the record that the domain gets.

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

/** The part of a spec that is stored as it is. Contents of files and values of secrets have tables of their own. */
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

/** The steps of the current operation that are done; null if there is nothing to skip. */
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
  /** The same for the whole life of the machine; null before it is made and after it is gone. */
  address: string | null
  /** The credential that last set it running: the unit counts against the limits of its policy. */
  held_by: string
  state: UnitState
  /** Incremented at each change of state. */
  revision: ColumnType<bigint, never, bigint>
  /** Incremented at each start (engine.ts). */
  generation: number
  stopped_reason: StoppedReason | null
  frozen: boolean
  /** Null until its machine was first hibernated, and while that is in progress. */
  memory_outcome: ColumnType<MemoryOutcome | null, MemoryOutcome | null | undefined, MemoryOutcome | null>
  /** Cleared by every change of state. */
  progress: ColumnType<Progress | null, string | null, string | null>
  sleep: string
  /** Whether it sleeps and wakes together with its stack (spec 2.6). */
  sleeps_together: boolean
  sleeps_at: Date | null
  last_used_at: Date | null
  created_at: Date
  changed_at: Date
  started_at: Date | null
  last_exit: StoredExit | null
  error: string | null
  destroys_at: Date | null
  /** The source of a copy. */
  forked_from: string | null
  /** The fork that made it and runs its creation. */
  fork_id: ColumnType<string | null, string | null | undefined, never>
  /** The first of several units that one create made; null for a unit that was made alone. */
  made_with: ColumnType<string | null, string | null | undefined, never>
  /** What was copied; null for a unit that is not a copy. */
  copied: ColumnType<Copied | null, Copied | null | undefined, Copied>
}

/** What became of its memory when its machine last hibernated; `refused`: the checkpoint failed. */
export type MemoryOutcome = 'kept' | 'refused' | 'gone'

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

/** Every read of units begins with this. `now` is the time up to which open meters count. */
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
