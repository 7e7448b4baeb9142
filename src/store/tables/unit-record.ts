// The columns of `units` (store/unit-record.ts).

import type { Protocol } from '../../contract/endpoint.ts'
import type { Env } from '../../contract/env.ts'
import type { Copied } from '../../contract/unit.ts'
import type { Metadata } from '../../contract/metadata.ts'
import type { PortRules } from '../../contract/port-host.ts'
import type { Size } from '../../contract/policy.ts'
import type { StoppedReason, UnitState } from '../../contract/states.ts'
import type { UnitEnd } from '../../contract/time-to-live.ts'
import type { Healthcheck } from '../../contract/unit-spec.ts'
import type { EgressRules } from '../../lib/egress/rules.ts'
import type { ColumnType } from 'kysely'

/** The part of a spec that is stored as it is. Contents of files and values of secrets have tables of their own. */
export type StoredSpec = {
  /** Containers may run in it. Absent: not. */
  nested?: boolean
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
export type Progress = {
  done: string[]
  /** Hosts that had no room for it. */
  tried?: string[]
}

export type StoredExit = { code: number; oomKilled: boolean; at: string }

/** The caller that made a unit, with its name at that time. Of a session: the person. */
export type CreatedBy = { id: string; kind: 'key' | 'oauth' | 'session'; name: string }

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
  /** The host that its machine and its disk are on. Changes only before anything of the unit has run (placement.ts). */
  host_id: ColumnType<string, string, string>
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
  /** The program that runs it, as its host said at its newest start; null: not said. */
  runtime: ColumnType<string | null, string | null | undefined, string | null>
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
  /** Null for a unit of an earlier release. */
  created_by: ColumnType<CreatedBy | null, CreatedBy | null | undefined, never>
  /** What it may reach; null: everything. */
  egress: EgressRules | null
  /** Counts the changes of `egress`. */
  egress_version: number
  /** The version that the engine has, and since when. */
  egress_applied_version: ColumnType<number, never, number>
  egress_applied_at: ColumnType<Date | null, never, Date>
  metadata: ColumnType<Metadata, string, string>
  /** As it was last set; null without an end. */
  time_to_live: string | null
  at_end: UnitEnd
  /** Null without a time to live, and until the unit was first ready (unit-state.ts). */
  ends_at: ColumnType<Date | null, never, Date | null>
  /** Null: as for every unit. */
  port_rules: ColumnType<PortRules | null, never, string | null>
}

/** What became of its memory when its machine last hibernated; `refused`: the checkpoint failed. */
export type MemoryOutcome = 'kept' | 'refused' | 'gone'
