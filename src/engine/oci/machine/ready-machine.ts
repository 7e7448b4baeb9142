// The types of the pool and its machines that the rest of the engine uses.

import type { MachineSpec, ReadyMachinesStatus } from '../../engine.ts'
import type { StoredImage } from '../images/store.ts'
import type { Attachment } from '../network/types.ts'
import type { Control } from '../runtime/control.ts'
import type { Standby } from './standbys.ts'
import type { RunPaths } from '../paths.ts'
import type { BundleInput } from '../runtime/bundle.ts'
import type { Driver } from '../runtime/driver.ts'
import type { Monitor } from '../runtime/monitor.ts'

/** A process in a sandbox that waits for its hostname. */
export type Naming = {
  control: Control
  /** The end of the process's stdin that the name is written to. */
  input: number
  exitCode: Promise<number | null>
}

export type Ready = {
  name: string
  spec: MachineSpec
  imageRoot: string
  /** Of the image and the runtime that it was made of (`identityOf`). */
  identity: string
  paths: RunPaths
  driver: Driver
  attachment: Attachment
  monitor: Monitor
  input: BundleInput
  /** The root of its mount, which the host has no path to any more. */
  root: number
  /** The engine's end of its first process's stdin. */
  orders: number
  /** Sets the hostname of a sandbox; null in runc, where the host sets it. */
  naming: Naming | null
  /** For its first command; null if its class has none, or once the machine has it. */
  standby: Standby | null
  memoryMb: number
  /** When a create took it. */
  takenAtMs: number
}

export type ReadyOptions = {
  /** How many of each kind, and more where that many creates come at once (bursts.ts). */
  perKind: number
  /** As for starts: it stays free. */
  memoryReserveMb: number
}

export type ReadyMachines = {
  /** Returns a machine for a create, which is the only one that gets it. Null if there is none of its kind. */
  take(spec: MachineSpec, image: StoredImage): Ready | null
  count(outcome: 'hit' | 'miss'): void
  /** Before a start that needs so much memory: those who wait go first. */
  makeRoom(memoryMb: number): Promise<void>
  /** Removes those that no create has started: before the pool, which they have open, is mounted again. */
  clear(): Promise<void>
  stats(): ReadyMachinesStatus
  begin(): void
  close(): Promise<void>
}
