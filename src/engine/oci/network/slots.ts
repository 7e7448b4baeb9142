// The network namespaces of machines. A slot is a network namespace with a wire to the host: a veth pair whose host
// side has a /32 route to the machine's address, and whose inner side is `eth0` with a default route through the
// gateway. No two machines share a link, so no neighbour can be impersonated: hardware addresses are static on both
// sides and ARP is off. IPv6 has no address inside and is off on the host side.
//
// Routes and neighbours are of the simple kinds that gVisor copies into its own stack at start. It then removes the
// address from `eth0`, so a slot serves one run and is never reused.

import { rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { run, runOrThrow } from '../kernel/programs.ts'
import { detachMount } from '../kernel/syscalls.ts'
import { interfacesHere } from './host-state.ts'
import { GATEWAY_MAC, MACHINE_MAC, type Names, namespacePath } from './names.ts'

export type Slot = {
  number: number
  namespace: string
  hostInterface: string
  address: string
}

const IP_TIMEOUT_MS = 15_000
const LOOK_EVERY_MS = 5
const KERNEL_MAY_TAKE_MS = 500

// Set on the host side of each wire, and on nothing else:
const interfaceSettings = {
  'ipv4/conf/*/forwarding': 1, // what comes in here may be passed on: the tables say where
  'ipv4/conf/*/rp_filter': 1, // the kernel's own check of the source, should the tables be gone
  'ipv4/conf/*/accept_redirects': 0, // a machine must not move the host's routes
  'ipv4/conf/*/drop_unicast_in_l2_multicast': 1, // a broadcast frame is no way around the hardware address
  'ipv6/conf/*/disable_ipv6': 1,
} as const

export function slotOf(names: Names, number: number, address: string): Slot {
  return {
    number,
    namespace: `${names.namespacePrefix}${number}`,
    hostInterface: `${names.interfacePrefix}${number}`,
    address,
  }
}

/** Makes slots that do not exist yet. */
export async function buildSlots(names: Names, slots: Slot[]): Promise<void> {
  await ip(slots.flatMap((slot) => [`netns add ${slot.namespace}`, ...wire(names, slot)]))
  await Promise.all(slots.map((slot) => setUpWire(names, slot)))
}

/** The wire was cut from outside: makes a new one into the existing namespace. */
export async function rewireSlot(names: Names, slot: Slot): Promise<void> {
  await ip(wire(names, slot))
  await setUpWire(names, slot)
}

/** Gives an unused slot another address. */
export async function readdressSlot(names: Names, slot: Slot, address: string): Promise<void> {
  await Promise.all([
    ip([
      ...route(names, slot.hostInterface, address),
      `route del ${slot.address}/32 dev ${slot.hostInterface}`,
    ]),
    // The new one first: an interface without any address would lose its routes.
    ip([`addr add ${address}/32 dev eth0`, `addr del ${slot.address}/32 dev eth0`], slot.namespace),
  ])
}

export async function restoreRoute(names: Names, slot: Slot): Promise<void> {
  await ip(route(names, slot.hostInterface, slot.address))
}

/** Removes namespaces and wires, also half-made and half-removed ones. */
export async function removeSlots(slots: Pick<Slot, 'namespace' | 'hostInterface'>[]): Promise<void> {
  if (slots.length === 0) return
  // The kernel removes wires together with their namespaces, many at once; by name it would take 30 ms for each, and
  // delay concurrent creations.
  await Promise.all(slots.map(({ namespace }) => removeNamespace(namespace)))
  const held = await stillThere(slots.map((slot) => slot.hostInterface))
  await ipForced(held.map((port) => `link del ${port}`))
}

/** As `ip netns del` does. It ends with the last process in it. */
async function removeNamespace(namespace: string): Promise<void> {
  const path = namespacePath(namespace)
  try {
    detachMount(path)
    await rm(path, { force: true })
  } catch {
    // The next recovery finds it.
  }
}

/** Returns the interfaces that still exist after a while: a dying process can hold them. */
async function stillThere(ports: string[]): Promise<string[]> {
  for (let waitedMs = 0; ; waitedMs += LOOK_EVERY_MS) {
    const here = await interfacesHere()
    const left = ports.filter((port) => here.has(port))
    if (left.length === 0 || waitedMs >= KERNEL_MAY_TAKE_MS) return left
    await delay(LOOK_EVERY_MS)
  }
}

function wire(names: Names, slot: Slot): string[] {
  const port = slot.hostInterface
  return [
    `link add ${port} type veth peer name eth0 address ${MACHINE_MAC} netns ${slot.namespace}`,
    `link set dev ${port} arp off addrgenmode none`,
    `link set dev ${port} up`,
    ...route(names, port, slot.address),
  ]
}

function route(names: Names, port: string, address: string): string[] {
  return [
    `route replace ${address}/32 dev ${port} src ${names.gateway}`,
    `neigh replace ${address} lladdr ${MACHINE_MAC} dev ${port} nud permanent`,
  ]
}

async function setUpWire(names: Names, slot: Slot): Promise<void> {
  const inside = [
    'link set dev lo up',
    'link set dev eth0 addrgenmode none',
    `addr add ${slot.address}/32 dev eth0`,
    'link set dev eth0 up',
    `neigh replace ${names.gateway} lladdr ${GATEWAY_MAC} dev eth0 nud permanent`,
    `route replace ${names.gateway}/32 dev eth0 scope link`,
    `route replace default via ${names.gateway} dev eth0`,
  ]
  await Promise.all([ip(inside, slot.namespace), setInterface(slot.hostInterface)])
}

async function setInterface(name: string): Promise<void> {
  for (const [path, value] of Object.entries(interfaceSettings)) {
    try {
      await writeFile(`/proc/sys/net/${path.replace('*', name)}`, String(value))
    } catch (error) {
      // A kernel without IPv6 does not have the setting.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !path.startsWith('ipv6/')) throw error
    }
  }
}

/** Runs a list of commands in one process, in a named namespace or on the host. */
export async function ip(commands: string[], namespace?: string): Promise<void> {
  const where = namespace === undefined ? [] : ['-n', namespace]
  await runOrThrow('ip', [...where, '-batch', '-'], {
    stdin: `${commands.join('\n')}\n`,
    timeoutMs: IP_TIMEOUT_MS,
  })
}

/** Like `ip`, but goes on if something is already gone. The next recovery finds what stays behind. */
async function ipForced(commands: string[]): Promise<void> {
  if (commands.length === 0) return
  await run('ip', ['-force', '-batch', '-'], {
    stdin: `${commands.join('\n')}\n`,
    timeoutMs: IP_TIMEOUT_MS + 100 * commands.length,
  })
}
