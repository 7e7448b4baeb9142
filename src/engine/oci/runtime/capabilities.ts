// What root in a machine may do.

/** Docker's default set without NET_RAW (spoofing) and MKNOD (devices), with the bits that the kernel has for them. */
const capabilityBits = {
  CAP_AUDIT_WRITE: 29,
  CAP_CHOWN: 0,
  CAP_DAC_OVERRIDE: 1,
  CAP_FOWNER: 3,
  CAP_FSETID: 4,
  CAP_KILL: 5,
  CAP_NET_BIND_SERVICE: 10,
  CAP_SETFCAP: 31,
  CAP_SETGID: 6,
  CAP_SETPCAP: 8,
  CAP_SETUID: 7,
  CAP_SYS_CHROOT: 18,
} as const

/**
 * What container engines need besides, in a sandbox whose kernel is its own: namespaces, mounts, interfaces, raw sockets and
 * devices of that kernel. None of them is a capability on the host.
 */
const nestedBits = {
  CAP_DAC_READ_SEARCH: 2,
  CAP_IPC_LOCK: 14,
  CAP_MKNOD: 27,
  CAP_NET_ADMIN: 12,
  CAP_NET_RAW: 13,
  CAP_SYS_ADMIN: 21,
  CAP_SYS_NICE: 23,
  CAP_SYS_PTRACE: 19,
  CAP_SYS_RESOURCE: 24,
} as const

const allBits = { ...capabilityBits, ...nestedBits }

export type Capability = keyof typeof allBits

export const CAPABILITIES = Object.keys(capabilityBits) as Capability[]
const NESTED_CAPABILITIES = Object.keys(allBits) as Capability[]

export type CapabilitySets = Record<
  'bounding' | 'effective' | 'permitted' | 'inheritable' | 'ambient',
  Capability[]
>

/** `nested`: of a machine in which container engines may run. */
export function capabilitySets(uid: number, nested = false): CapabilitySets {
  const most = nested ? NESTED_CAPABILITIES : CAPABILITIES
  const held = uid === 0 ? [...most] : []
  return { bounding: [...most], effective: held, permitted: held, inheritable: [], ambient: [] }
}

/** Those of root in a machine whose first process has these. */
export function rootsOf({ bounding }: CapabilitySets): CapabilitySets {
  return { bounding, effective: bounding, permitted: bounding, inheritable: [], ambient: [] }
}

/**
 * Of a program of ours that finds commands in a sandbox by their environment: that of another user's process is read with
 * CAP_SYS_PTRACE alone, also by root.
 */
export function findingCapabilities(): CapabilitySets {
  const held: Capability[] = [...CAPABILITIES, 'CAP_SYS_PTRACE']
  return { bounding: held, effective: held, permitted: held, inheritable: [], ambient: [] }
}

/** As one number, which has a bit for each. */
export function capabilityMask(names: Capability[]): number {
  return names.reduce((mask, name) => mask + 2 ** allBits[name], 0)
}
