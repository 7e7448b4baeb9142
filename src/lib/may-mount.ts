// Whether this process may make mounts, as root may on a machine, and not in a container without privileges.

import { readFileSync } from 'node:fs'

const CAP_SYS_ADMIN = 21n

/** `status`: as in proc(5). */
export function mayMount(status = readFileSync('/proc/self/status', 'utf8')): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'
  return ((BigInt(`0x${effective}`) >> CAP_SYS_ADMIN) & 1n) === 1n
}
