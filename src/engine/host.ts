// What an engine says of its host (engine.ts).

import type { IsolationClass } from './machine.ts'

export type ClassCapability = {
  class: IsolationClass
  available: boolean
  /** Runtime and version if available, else what to install or change. */
  detail: string
  /** Whether a machine's memory can outlive its run, as shown by a probe that tried it. */
  memory: { available: boolean; detail: string }
  /** Whether containers can run in its machines, else why not. Absent: an earlier Berth, in which they cannot. */
  nested?: { available: boolean; detail: string } | undefined
}

export type Capabilities = {
  classes: ClassCapability[]
  /** The class of machines that ask for none, and why it was chosen. */
  defaultClass: IsolationClass
  defaultReason: string
  /** Whether `restrict` is enforced. */
  egress?: boolean | undefined
  /** Whether the secrets that `restrict` names are put into requests. */
  brokersSecrets?: boolean | undefined
}

/** The resources that the machines of this engine share. */
export type Capacity = {
  cpus: number
  memoryMb: number
  availableMemoryMb: number
  /** How much disk the machines of one network group may use together. */
  teamDiskGb: number
  /** Where the disks of machines are. Absent: an earlier Berth, which does not say. */
  disk?: { gb: number; freeGb: number } | undefined
  /** Absent: it makes none ahead. */
  readyMachines?: ReadyMachinesStatus | undefined
  host?: HostFacts | undefined
}

/** Whose machines these are, in which boot of the host, what its wall clock says, and where addresses of machines are. */
export type HostFacts = {
  instance: string
  boot: string
  nowMs: number
  subnet: string
  /** How visitors reach them (contract/gateway-facts.ts), not checked yet. Absent: as the server's own settings say. */
  gateway?: unknown
  /** Of the Berth that runs there. Absent: an earlier one, which does not say. */
  version?: string | undefined
}

/** Machines made ahead: how many wait and what they use, and how many creates found one since the engine started. */
export type ReadyMachinesStatus = { waiting: number; memoryMb: number; hits: number; misses: number }

export type RecoverReport = { adopted: number; removed: number; lost: number }
