// What an instance has on the host besides its machines: the gateway address on `lo`, and a route that discards the
// rest of the subnet, so that a packet to a sleeping machine is retried instead of leaving through the uplink.

import { run } from '../kernel/programs.ts'
import { hasAddress, interfacesHere, namespacesHere, routesHere } from './host-state.ts'
import type { Names } from './names.ts'
import { ip } from './slots.ts'

export type FoundSlot = {
  number: number
  namespace: string
  hostInterface: string
  /** The address of its route; null if the wire or the route is missing. */
  address: string | null
  /** Whether both halves exist. */
  whole: boolean
}

/** Returns everything on the host that is named like a slot of this instance, complete or not. */
export async function findSlots(names: Names): Promise<FoundSlot[]> {
  const [namespaces, interfaces, routes] = await Promise.all([
    namespacesHere(names.namespacePrefix),
    interfacesHere(),
    routesHere(),
  ])
  const numbers = new Set(
    [
      ...namespaces.map((name) => name.slice(names.namespacePrefix.length)),
      ...[...interfaces]
        .filter((name) => name.startsWith(names.interfacePrefix))
        .map((name) => name.slice(names.interfacePrefix.length)),
    ].filter((text) => /^\d{1,9}$/.test(text)),
  )
  return [...numbers].map((text) => {
    const namespace = `${names.namespacePrefix}${text}`
    const hostInterface = `${names.interfacePrefix}${text}`
    const route = routes.find((each) => each.interface === hostInterface)
    return {
      number: Number(text),
      namespace,
      hostInterface,
      address: route?.destination.replace(/\/32$/, '') ?? null,
      whole: namespaces.includes(namespace) && interfaces.has(hostInterface),
    }
  })
}

export async function claimSubnet({ gateway, subnet }: Names): Promise<void> {
  await ip([`addr replace ${gateway}/32 dev lo`, 'link set dev lo up', `route replace blackhole ${subnet}`])
}

/** Returns true if it had to be restored. */
export async function repairSubnet(names: Names): Promise<boolean> {
  const routes = await routesHere()
  const isDiscarded = routes.some((route) => route.interface === null && route.destination === names.subnet)
  if (isDiscarded && hasAddress(names.gateway)) return false
  await claimSubnet(names)
  return true
}

export async function releaseSubnet({ gateway, subnet }: Names): Promise<void> {
  await run('ip', ['-force', '-batch', '-'], {
    stdin: `addr del ${gateway}/32 dev lo\nroute del blackhole ${subnet}\n`,
    timeoutMs: 10_000,
  })
}
