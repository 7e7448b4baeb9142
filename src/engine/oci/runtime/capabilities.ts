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

export type Capability = keyof typeof capabilityBits

export const CAPABILITIES = Object.keys(capabilityBits) as Capability[]

export type CapabilitySets = Record<
  'bounding' | 'effective' | 'permitted' | 'inheritable' | 'ambient',
  Capability[]
>

export function capabilitySets(uid: number): CapabilitySets {
  const held = uid === 0 ? [...CAPABILITIES] : []
  return { bounding: [...CAPABILITIES], effective: held, permitted: held, inheritable: [], ambient: [] }
}

/** As one number, which has a bit for each. */
export function capabilityMask(names: Capability[]): number {
  return names.reduce((mask, name) => mask + 2 ** capabilityBits[name], 0)
}
