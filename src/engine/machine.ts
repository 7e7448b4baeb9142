// What a machine and its runs are, as the rules ask for them and the engine reports them (engine.ts).

import type { MachineEgress } from './egress.ts'
import type { MachineRef } from './machine-ref.ts'

export const isolationClasses = ['gvisor', 'runc'] as const

export type IsolationClass = (typeof isolationClasses)[number]

export type ImageConfig = {
  env: string[]
  entrypoint: string[]
  cmd: string[]
  workingDir: string
  user: string
  exposedPorts: number[]
  ahead?: AheadOfOrders | undefined
}

/** Of built-in images alone: what a machine that is made ahead begins before it is a unit's. */
export type AheadOfOrders = {
  command: string[]
  /** The file that is there once that has begun. */
  begun: string
}

/** A pulled image: `digest` identifies it from then on. */
export type Image = { reference: string; digest: string; config: ImageConfig }

/** The machine that waits for the image, and the team whose share of pulls it uses. */
export type PullWaiter = { id: string; teamId: string; networkGroup: number }

export type MachineSize = { cpus: number; memoryMb: number; pids: number; diskGb: number }

/** What stays the same for a machine's whole life, from create to destroy. */
export type MachineSpec = {
  id: string
  imageDigest: string
  isolation: IsolationClass
  size: MachineSize
  volume: { mount: string; gb: number } | null
  /** Machines of one network group can talk to each other, and to no other group. Each team has one group. */
  networkGroup: number
  /** Containers may run in it. Absent: not. */
  nested?: boolean | undefined
}

/** What each start of a machine sets. */
export type RunSpec = {
  hostname: string
  /** Null: the image's own. An entrypoint of the caller discards the image's cmd, as in Docker. */
  entrypoint: string[] | null
  cmd: string[] | null
  /** Overrides the image's environment. Values can be secrets: they reach the machine only through its configuration. */
  env: Record<string, string>
  /** Boot files, written before the process starts. Paths are absolute in the machine. */
  files: { path: string; content: Buffer }[]
  /** Search domain of the resolver in the machine: siblings can be reached by their bare name. */
  searchDomain: string
  /** In force before its first process executes or its memory is resumed. Null: no restriction. */
  egress: MachineEgress | null
  /** It is ready once a probe has passed (`ExecRequest.probe`), not when its process has started. */
  probed?: boolean | undefined
  /** A sentence for its log, before anything that this run prints. */
  note?: string | undefined
}

/**
 * `resumed`: with the memory of an earlier run. `runtime`: the program that runs it and its version, such as
 * `runsc 20260905.0`; absent: an earlier Berth, which does not say.
 */
export type Started = { resumed: boolean; runtime?: string | undefined }

/** A machine to create as a copy of another one: of its image, class, size, disk and volume. */
export type ForkSpec = {
  id: string
  /** `generation`: the newest run of the source that the caller knows. */
  source: MachineRef
  networkGroup: number
  /** The spec of its first run. Null: it will not be started now, and needs no memory. */
  run: RunSpec | null
}

/** `copied`: what was copied of the source. Whether memory is used only its start shows (`Started`). */
export type Forked = { status: MachineStatus; copied: 'memory' | 'disk' }

/**
 * How a run ended. `code` is 128 + n for signal n (spec 2.1). `byHost`: it was killed from outside, and the service
 * did not ask for that; false also if the host cannot tell.
 */
export type Exit = { code: number; oomKilled: boolean; byHost: boolean; at: Date }

export type MachineStatus = {
  id: string
  generation: number
  /** `lost`: it was running and is not, and how it ended is unknown (the host went down). */
  state: 'created' | 'running' | 'exited' | 'lost'
  /** It is paused: see `freeze`. */
  frozen: boolean
  exit: Exit | null
  address: string
}
