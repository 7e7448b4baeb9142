// What of an isolation class is known without any program: the closed set of its differences. The configuration of a machine,
// its disks and its copies follow from it.

import type { IsolationClass } from '../engine.ts'

export type Traits = {
  /**
   * Its machines are processes of the host's kernel: filtered, with control groups, settings and a host name that the host
   * sees. Otherwise they have a kernel of their own, which keeps buffers, names and unwritten data to itself.
   */
  sharesKernel: boolean
  /** The kernel of its own counts against the limits of its machine: room for it beside what the machine asked for. */
  ownMemoryMb: number
  ownPids: number
  /** It mounts a file system in memory over an empty /tmp, unless something is mounted there. */
  replacesTmp: boolean
  /** Each mount slows a start: only those that have a purpose are made. */
  mountsSlowly: boolean
}

const traits: Record<IsolationClass, Traits> = {
  gvisor: { sharesKernel: false, ownMemoryMb: 96, ownPids: 512, replacesTmp: true, mountsSlowly: true },
  runc: { sharesKernel: true, ownMemoryMb: 0, ownPids: 0, replacesTmp: false, mountsSlowly: false },
}

export function traitsOf({ isolation }: { isolation: IsolationClass }): Traits {
  return traits[isolation]
}
