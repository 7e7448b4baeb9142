// The machines' network on this host (design 3 "Network"): a namespace and a wire for each (slots.ts), prepared ahead
// (pool.ts); an address for life (addresses.ts); rules that exist before the first machine (firewall-rules.ts, firewall.ts)
// and are restored when anything changes them (watchdog.ts).
//
// Everything is named after the instance. Nothing is stored: `recover` reads names and routes from the host, keeps
// what belongs to known machines and removes the rest.

import { createKeyedLock } from '../../../lib/concurrency/keyed-lock.ts'
import type { MachineSeen } from '../../../lib/egress/seen.ts'
import type { Log } from '../../../lib/log.ts'
import type { MachineEgress } from '../../egress.ts'
import { EngineError } from '../../errors.ts'
import { createAddresses } from './addresses.ts'
import { openConnections } from './connections.ts'
import { createFirewall } from './firewall.ts'
import { type Instance, type Names, namespacePath, namesOf } from './names.ts'
import { hasCarried } from './host-state.ts'
import { openNetfilter } from './netfilter.ts'
import { openStateFile } from './state-file.ts'
import { createOtherFirewalls } from './other-firewalls.ts'
import { createPool } from './pool.ts'
import { claimSubnet, type FoundSlot, findSlots, releaseSubnet } from './host-routes.ts'
import { buildSlots, readdressSlot, removeSlots, type Slot, slotOf } from './slots.ts'
import { type EgressOptions, openRestricting, type Restricted, type Restricting } from './restricting.ts'
import type { Pullers } from './firewall-rules.ts'
import { createSeen, type Seen } from './seen.ts'
import { createTraffic, type Pair } from './traffic.ts'
import { closeUplinks, planUplinks, setForwarding } from './uplinks.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'

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

type Machine = {
  group: number
  address: string
  slot: Slot | null
  restricted: Restricted
  /** No packet has passed any wire that it had before its present one: there is no connection to forget. */
  isQuiet: boolean
}

/** Nothing on the host is touched before `recover`. */
export async function openNetwork(options: NetworkOptions): Promise<Network> {
  const { log, dnsPort } = options
  const names = namesOf(options.instance)
  const stateFile = await openStateFile(options.stateDir)
  const pullers = options.pullers ?? { gids: [], allowed: [] }
  const netfilter = openNetfilter()
  const connections = openConnections()
  const { ports: egressPorts, gid: egressGid } = options.egress
  const tables = { names, dnsPort, pullers, egressPorts, egressGid }
  const firewall = createFirewall(tables, netfilter, log)
  const traffic = createTraffic(names, netfilter.generation, log)
  const otherFirewalls = createOtherFirewalls(names, dnsPort, netfilter.generation, log)
  const addresses = createAddresses({
    subnet: names.subnet,
    turn: stateFile.read().turn,
    onTurn: stateFile.reserveTurn,
  })
  const machines = new Map<string, Machine>()
  const inTurn = createKeyedLock()
  let nextNumber = 1
  let watchdog: Watchdog | null = null
  let restricting: Restricting | null = null
  const seen = createSeen()

  const pool = createPool(async (count) => {
    const slots = Array.from({ length: count }, () => slotOf(names, nextNumber++, addresses.allot()))
    try {
      await buildSlots(names, slots)
      await firewall.openPorts(slots.map((slot) => slot.hostInterface))
    } catch (error) {
      await discard(slots)
      for (const slot of slots) addresses.free(slot.address)
      throw error
    }
    return slots
  }, log)

  const discard = async (slots: Slot[]) => {
    await firewall.closePorts(slots.map((slot) => slot.hostInterface))
    await removeSlots(slots)
  }

  const discarding = new Set<Promise<void>>()
  const discardLater = (slot: Slot) => {
    const done: Promise<void> = discard([slot])
      .catch((error: unknown) =>
        log.warn({ err: error }, 'a used network slot stays until the next recovery'),
      )
      .finally(() => discarding.delete(done))
    discarding.add(done)
  }

  /** Puts a machine into a prepared slot: with the slot's own address, or with the machine's. */
  const takeSlot = async ({ group, address }: { group: number; address: string | null }): Promise<Slot> => {
    const prepared = await pool.take()
    const slot = { ...prepared, address: address ?? prepared.address }
    try {
      await Promise.all([
        firewall.admit({ port: slot.hostInterface, address: slot.address, group }),
        address === null ? undefined : readdressSlot(names, prepared, address),
      ])
      if (address !== null) addresses.free(prepared.address)
      return slot
    } catch (error) {
      discardLater(prepared)
      if (address === null) await firewall.forget(prepared.address)
      addresses.free(prepared.address)
      throw error
    }
  }

  const unplug = async (machine: Machine) => {
    const { slot } = machine
    machine.slot = null
    restricting?.ended(machine.address)
    if (!slot) return
    // From then on nothing of the machine gets here. What is sent to it has no answer, and begins nothing that is established.
    await firewall.closePorts([slot.hostInterface])
    machine.isQuiet &&= !(await hasCarried(slot.hostInterface))
    await removeSlots([slot])
  }

  const requireRecovered = () => {
    if (watchdog === null) throw new Error('the network is not open: recover comes first, close last')
  }

  const syncUplinks = async () => {
    const before = stateFile.read().opened
    const { opened, toOpen } = await planUplinks(before)
    if (opened.join() !== before.join()) stateFile.write({ opened })
    await firewall.setOpened(opened)
    for (const name of toOpen) await setForwarding(name, true)
  }

  return {
    async recover(known) {
      if (watchdog !== null) throw new Error('the network has been recovered already')
      for (const { machineId, group, address, egress } of known) {
        requireGroup(group)
        if (addresses.claim(address))
          machines.set(machineId, {
            group,
            address,
            slot: null,
            restricted: { egress, isNew: false },
            isQuiet: false,
          })
        else log.error({ machineId }, 'two machines claim one address, or it is none of ours')
      }
      const found = await findSlots(names)
      nextNumber = Math.max(0, ...found.map((slot) => slot.number)) + 1
      const missing: string[] = []
      for (const { machineId, running } of known) {
        const machine = machines.get(machineId)
        if (!machine || !running) continue
        machine.slot = adopt(names, machine.address, found)
        if (!machine.slot) missing.push(machineId)
      }

      const kept = [...machines.values()].flatMap(({ slot }) => slot ?? [])
      await claimSubnet(names)
      await traffic.load()
      await firewall.reset({
        members: new Map([...machines.values()].map(({ address, group }) => [address, group])),
        ports: new Map(kept.map((slot) => [slot.hostInterface, slot.address])),
        egress: new Map(
          [...machines.values()].flatMap(({ address, restricted: { egress } }) =>
            egress === null ? [] : [[address, egress] as const],
          ),
        ),
      })
      restricting = await openRestricting(
        options.egress,
        firewall,
        connections,
        log,
        () =>
          [...machines].flatMap(([machine, { address, group, restricted }]) =>
            restricted.egress === null ? [] : [{ machine, address, group, egress: restricted.egress }],
          ),
        (lines) => seen.add(ofMachines(lines, machines)),
      )
      const leftovers = found.filter((slot) => !kept.some(({ number }) => number === slot.number))
      await removeSlots(leftovers)
      await syncUplinks()
      await otherFirewalls.ensure()
      watchdog = startWatchdog({
        names,
        firewall,
        traffic,
        otherFirewalls,
        syncUplinks,
        refill: () => pool.refill(),
        slotsInUse: () => [...machines.values()].flatMap(({ slot }) => slot ?? []),
        onRewired: (slot) => {
          for (const machine of machines.values()) if (machine.slot === slot) machine.isQuiet = false
        },
        log,
      })
      pool.refill()
      return { adopted: kept.length, removed: leftovers.length, missing }
    },

    attach: ({ machineId, group, address: asked }) =>
      inTurn(machineId, async () => {
        requireRecovered()
        requireGroup(group)
        const before = machines.get(machineId)
        const own = before?.address ?? asked
        if (asked !== null && asked !== own)
          throw new EngineError('internal', 'The machine has another address.')
        const isNewHere = before === undefined
        if (isNewHere && own !== null && !addresses.claim(own)) {
          throw new EngineError('internal', 'The address is not free.')
        }
        try {
          const slot = await takeSlot({ group, address: own })
          const restricted = before?.restricted ?? { egress: null, isNew: own === null }
          const isQuiet = before ? before.isQuiet && before.slot === null : own === null
          machines.set(machineId, { group, address: slot.address, slot, restricted, isQuiet })
          if (before?.slot) discardLater(before.slot)
          return {
            address: slot.address,
            namespacePath: namespacePath(slot.namespace),
            hostInterface: slot.hostInterface,
          }
        } catch (error) {
          if (isNewHere && own !== null) addresses.free(own)
          throw error
        }
      }),

    rename: (machineId, to) => {
      const machine = machines.get(machineId)
      if (!machine && machines.has(to)) return
      if (!machine || machines.has(to)) throw new Error('there is nothing to rename, or its name is taken')
      machines.delete(machineId)
      machines.set(to, machine)
    },

    restrict: (machineId, egress) =>
      inTurn(machineId, async () => {
        requireRecovered()
        const machine = machines.get(machineId)
        if (machine) await restricting?.restrict({ machineId, ...machine }, egress)
      }),

    authorityOf: (group) => restricting?.authorityOf(group) ?? null,

    detach: (machineId) =>
      inTurn(machineId, async () => {
        requireRecovered()
        const machine = machines.get(machineId)
        if (machine) await unplug(machine)
      }),

    release: (machineId) =>
      inTurn(machineId, async () => {
        requireRecovered()
        const machine = machines.get(machineId)
        if (!machine) return
        await unplug(machine)
        const forgotten = machine.isQuiet ? undefined : connections.forget(machine.address)
        await Promise.all([firewall.forget(machine.address), forgotten])
        machines.delete(machineId)
        addresses.free(machine.address)
      }),

    interfaceOf: (machineId) => machines.get(machineId)?.slot?.hostInterface ?? null,

    watchTraffic: (onSent, signal) => traffic.watch(onSent, signal),
    watchSeen: seen.watch,

    async close({ removeAll }) {
      await watchdog?.stop()
      await restricting?.close()
      watchdog = null
      traffic.close()
      netfilter.close()
      connections.close()
      const unused = await pool.drain()
      await Promise.allSettled(discarding)
      if (!removeAll) return await discard(unused)
      await otherFirewalls.remove()
      await removeSlots(await findSlots(names))
      await firewall.remove()
      await traffic.remove()
      await releaseSubnet(names)
      await closeUplinks(stateFile.read().opened)
      stateFile.write({ opened: [] })
    },
  }
}

/** Returns the lines with the ids of their machines, and without those of machines that are gone. */
function ofMachines(lines: MachineSeen[], machines: Map<string, Machine>): MachineSeen[] {
  const owners = new Map([...machines].map(([id, { address }]) => [address, id]))
  return lines.flatMap((line) => {
    const machine = owners.get(line.machine)
    return machine === undefined ? [] : [{ ...line, machine }]
  })
}

/** Returns the slot with this address, if it is still usable for the machine that runs in it. */
function adopt(names: Names, address: string, found: FoundSlot[]): Slot | null {
  const slot = found.find((each) => each.whole && each.address === address)
  return slot ? slotOf(names, slot.number, address) : null
}

/** Groups are packet marks in the table: 32 bits. */
function requireGroup(group: number): void {
  if (!Number.isInteger(group) || group < 0 || group > 0xffff_ffff) {
    throw new RangeError(`a network group is a 32-bit number, not ${group}`)
  }
}
