// The name of this machine among the hosts of its Berth.

import { hostname } from 'node:os'
import { isHostName } from './fleet-identity.ts'

/** The machine's own name, or one from the instance if that cannot be a name of a host. */
export function ownHostName(instanceId: string): string {
  const own = hostname().toLowerCase().split('.')[0] ?? ''
  return isHostName(own) ? own : `host-${instanceId}`
}
