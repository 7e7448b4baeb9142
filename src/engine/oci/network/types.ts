// What the engine asks of the network of its machines (network.ts).

import type { Log } from '../../../lib/log.ts'
import type { MachineEgress } from '../../egress.ts'
import type { Pullers } from './firewall-processes.ts'
import type { Instance } from './names.ts'
import type { EgressOptions } from './restricting.ts'
import type { Seen } from './seen.ts'
import type { Pair } from './traffic.ts'

export type NetworkOptions = {
  instance: Instance
  /** Where the resolver listens on the gateway address; machines reach it on port 53. */
  dnsPort: number
  /** A directory of the network's own, for what outlives the process. */
  stateDir: string
  /** Processes that fetch from untrusted addresses: they may not reach private ones. */
  pullers?: Pullers
  egress: EgressOptions
  log: Log
}

export type Attachment = {
  address: string
  /** For the bundle: `namespaces: [{ type: 'network', path }]`. */
  namespacePath: string
  hostInterface: string
}

export type KnownMachine = {
  machineId: string
  group: number
  address: string
  running: boolean
  egress: MachineEgress | null
}

export type RecoveredNetwork = {
  /** Running machines whose namespace exists. */
  adopted: number
  /** Namespaces and wires without a known machine. */
  removed: number
  /** Running machines whose namespace is gone: they have no network until they start again. */
  missing: string[]
}

export type Network = {
  /** Call it first, once: prepares the host, keeps the network of running machines, and removes everything else. */
  recover(known: KnownMachine[]): Promise<RecoveredNetwork>

  /**
   * Returns the network for the next run of a machine, always in an unused namespace: gVisor empties the one it ran
   * in. `address` is the machine's own from an earlier run, or null at its first. Throws EngineError `host_full` when
   * all addresses are taken.
   */
  attach(machine: { machineId: string; group: number; address: string | null }): Promise<Attachment>

  /** What was attached for one machine is another's from now on, of the same group. */
  rename(machineId: string, to: string): void

  /**
   * Sets what a machine that has been attached may reach. Resolves once that is in force and what is open is cut if it
   * is not allowed any more. Null: no restriction.
   */
  restrict(machineId: string, egress: MachineEgress | null): Promise<void>

  /** Returns the certificate that machines of a group with secrets must trust, in PEM; null before it is known. */
  authorityOf(group: number): string | null

  /** After a run: removes namespace and wire; the address stays the machine's. Unknown ids succeed. */
  detach(machineId: string): Promise<void>

  /** The machine is destroyed: frees its address and forgets its connections. Unknown ids succeed. */
  release(machineId: string): Promise<void>

  /** Returns the host's end of the wire of a machine's run. Null while it has none. */
  interfaceOf(machineId: string): string | null

  /**
   * Calls back a few times a second with the pairs of machines of a group that exchanged packets since the last time,
   * whether the receiver runs or not. A new watcher first gets those of the last while.
   */
  watchTraffic(onSent: (pairs: Pair[]) => void, signal: AbortSignal): Promise<void>

  /** Calls back with what restricted machines reached and were refused, by their ids (seen.ts). */
  watchSeen: Seen['watch']

  /** Running machines keep their network; use `removeAll` when there are none. */
  close(options: { removeAll: boolean }): Promise<void>
}
