// The machines' network on this host (design 3 "Network"): a namespace and a wire for each, prepared ahead
// (wires.ts); an address for life (addresses.ts); rules that exist before the first machine (firewall-rules.ts, firewall.ts)
// and are restored when anything changes them (watchdog.ts).
//
// Everything is named after the instance. Nothing is stored: `recover` reads names and routes from the host, keeps
// what belongs to known machines and removes the rest.

import { createKeyedLock } from '../../../lib/concurrency/keyed-lock.ts'
import type { MachineSeen } from '../../../lib/egress/seen.ts'
import { EngineError } from '../../errors.ts'
import { createAddresses } from './addresses.ts'
import { openConnections } from './connections.ts'
import { createFirewall } from './firewall.ts'
import { type Names, namespacePath, namesOf } from './names.ts'
import { openNetfilter } from './netfilter.ts'
import { openStateFile } from './state-file.ts'
import { createOtherFirewalls } from './other-firewalls.ts'
import { claimSubnet, type FoundSlot, findSlots, releaseSubnet } from './host-routes.ts'
import { removeSlots, type Slot, slotOf } from './slots.ts'
import { openRestricting, type Restricted, type Restricting } from './restricting.ts'
import { createSeen } from './seen.ts'
import { createTraffic } from './traffic.ts'
import type { Network, NetworkOptions } from './types.ts'
import { closeUplinks, planUplinks, setForwarding } from './uplinks.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'
import { createWires } from './wires.ts'

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
  const wires = createWires({ names, firewall, addresses, log })
  let watchdog: Watchdog | null = null
  let restricting: Restricting | null = null
  const seen = createSeen()

  const unplug = async (machine: Machine) => {
    const { slot } = machine
    machine.slot = null
    restricting?.ended(machine.address)
    if (slot && (await wires.remove(slot))) machine.isQuiet = false
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
      wires.numberFrom(Math.max(0, ...found.map((slot) => slot.number)) + 1)
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
        refill: () => wires.refill(),
        slotsInUse: () => [...machines.values()].flatMap(({ slot }) => slot ?? []),
        onRewired: (slot) => {
          for (const machine of machines.values()) if (machine.slot === slot) machine.isQuiet = false
        },
        log,
      })
      wires.refill()
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
          const slot = await wires.take({ group, address: own })
          const restricted = before?.restricted ?? { egress: null, isNew: own === null }
          const isQuiet = before ? before.isQuiet && before.slot === null : own === null
          machines.set(machineId, { group, address: slot.address, slot, restricted, isQuiet })
          if (before?.slot) wires.removeLater(before.slot)
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
      await wires.close({ removeAll })
      if (!removeAll) return
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
