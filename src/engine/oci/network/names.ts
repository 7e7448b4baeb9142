// The names of an instance's network on the host. Everything is named after the instance, so that all that is ours
// can be found by name, and two instances on one host never touch each other.

export type Instance = {
  /** Four characters a-z0-9. */
  id: string
  /** `10.x.0.0/16`: the machines' addresses; its first address is the gateway. */
  subnet: string
}

export type Names = {
  /** Of both nftables tables, `inet` and `netdev`. */
  table: string
  namespacePrefix: string
  /** An interface name has at most 15 characters; the dash keeps `bridg` + `e0` from being ours. */
  interfacePrefix: string
  subnet: string
  gateway: string
}

export const NAMESPACE_DIR = '/run/netns'

/**
 * Every machine's `eth0` has this hardware address: no two share a link, and a fork restored into another namespace
 * finds the address it remembers.
 */
export const MACHINE_MAC = '02:be:00:00:00:02'

/**
 * The gateway's hardware address, as machines know it. No interface has it, so the kernel itself drops what machines
 * send unless the `netdev` table accepts it: without our tables nothing passes.
 */
export const GATEWAY_MAC = '02:be:00:00:00:01'

/** Throws if the instance's id or subnet is not safe to use in a name or a rule. */
export function namesOf({ id, subnet }: Instance): Names {
  if (!/^[a-z0-9]{4}$/.test(id)) throw new Error(`instance id must be 4 characters a-z0-9, not "${id}"`)
  const base = /^(10\.\d{1,3}\.0)\.0\/16$/.exec(subnet)?.[1]
  if (base === undefined) throw new Error(`subnet must be 10.x.0.0/16, not "${subnet}"`)
  return {
    table: `berth_${id}`,
    namespacePrefix: `berth-${id}-`,
    interfacePrefix: `b${id}-`,
    subnet,
    gateway: `${base}.1`,
  }
}

export function namespacePath(namespace: string): string {
  return `${NAMESPACE_DIR}/${namespace}`
}
