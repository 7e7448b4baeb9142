// Keeps the kernel's tables as they should be. The wanted state is here; each change is sent to the kernel as a small
// transaction, concurrent changes share one, and if a transaction fails, for whatever reason, both tables are loaded
// again completely. So the kernel is never more than one load away from the wanted state.

import { batched } from '../../../lib/concurrency/batch.ts'
import { createKeyedLock } from '../../../lib/concurrency/keyed-lock.ts'
import type { Log } from '../../../lib/log.ts'
import type { MachineEgress } from '../../egress.ts'
import { interfacesHere } from './host-state.ts'
import { loadRuleset } from './expected-ruleset.ts'
import type { Netfilter } from './netfilter.ts'
import { applyRules } from './nft.ts'
import {
  addElement,
  adding,
  addStarting,
  closingPort,
  commandsOf,
  deleteElement,
  deleting,
  type MachineChange,
  machineElement,
  memberElements,
  openingPort,
} from './firewall-elements.ts'
import { type FirewallState, renderTables, type TableOptions } from './firewall-rules.ts'
import { type Element, elementsOf, type Pin, pinsWithin, type Restriction, withPins } from './restrictions.ts'
import { readTables, sameElements } from './table-listing.ts'

export type Firewall = {
  /** Loads both tables completely, in one transaction. */
  load(): Promise<void>
  /** Interfaces that exist from now on; packets from them are dropped until `admit`. */
  openPorts(ports: string[]): Promise<void>
  /** The machine with this address, about to start, uses this interface, and may talk to its group. */
  admit(machine: { port: string; address: string; group: number }): Promise<void>
  /** The interface is about to be removed. Its machine's address stays a member of its group. */
  closePorts(ports: string[]): Promise<void>
  /** The address does not belong to a machine any more. */
  forget(address: string): Promise<void>
  /** What the machine with this address may reach. Pins that the rules allow stay. Null: no restriction. */
  restrict(address: string, egress: MachineEgress | null): Promise<void>
  /** Lets a restricted machine reach these addresses; for another one it does nothing. */
  pin(address: string, pins: Pin[]): Promise<void>
  restrictionOf(address: string): Restriction | null
  /** Replaces the wanted state, and loads it. Pins in the kernel stay where the machine's rules are known. */
  reset(
    state: Pick<FirewallState, 'members' | 'ports'> & { egress: Map<string, MachineEgress> },
  ): Promise<void>
  setOpened(uplinks: string[]): Promise<void>
  /** Compares the kernel with the wanted state, and loads if they differ. Returns true if they did. */
  repair(): Promise<boolean>
  remove(): Promise<void>
}

/** A command of nft, or a change that the kernel can be asked for directly. */
type Command = string | MachineChange

/** Changes the wanted state and returns the commands that do the same in the kernel; null: load everything. */
type Change = (state: FirewallState) => Command[] | null

export function createFirewall(
  options: TableOptions,
  { generation: rulesGeneration, change: changeAtOnce }: Pick<Netfilter, 'generation' | 'change'>,
  log: Log,
): Firewall {
  const { names } = options
  const state: FirewallState = { members: new Map(), ports: new Map(), opened: [], egress: new Map() }
  const stacks = new Map<string, number>()
  /** The rules as the kernel lists them after our last load; null: unknown. */
  let loadedRules: string | null = null
  /** The last change of any rules after which ours were found correct. */
  let foundGood: number | null = null

  /** Chains depend on interfaces: one that vanished must not make the whole transaction fail. */
  const present = async (): Promise<FirewallState> => {
    const here = await interfacesHere()
    return { ...state, ports: new Map([...state.ports].filter(([port]) => here.has(port))) }
  }

  const load = async () => {
    const tables = renderTables(options, await present())
    const list = async () => (await readTables(names.table))?.rules ?? null
    loadedRules = (await loadRuleset(rulesGeneration, () => applyRules([tables]), list))?.rules ?? null
  }

  // Everything that uses the kernel holds this lock, including loads and comparisons: a comparison in the middle of a
  // change would see a false difference.
  const locked = createKeyedLock()
  const inTurn = <T>(work: () => Promise<T>) => locked('kernel', work)

  const change = batched<Change, undefined>((changes) =>
    inTurn(async () => {
      const commands = changes.map((alter) => alter(state))
      if (commands.includes(null)) await load()
      else await applyOrLoad(commands.flatMap((lines) => lines ?? []))
      return changes.map(() => undefined)
    }),
  )

  const stackNumber = (stack: string): number => {
    const number = stacks.get(stack) ?? stacks.size + 1
    stacks.set(stack, number)
    return number
  }
  const restrictionFor = (egress: MachineEgress, pins: Pin[]): Restriction => ({
    egress,
    stack: egress.stack === null ? null : stackNumber(egress.stack),
    pins,
  })

  /** Changes what one machine may reach, and returns the commands for the difference. */
  const setEgress = (current: FirewallState, address: string, next: Restriction | null): string[] => {
    const before = current.egress.get(address)
    const [old, wanted] = [before, next].map((each) => (each ? elementsOf(address, each) : []))
    if (next) current.egress.set(address, next)
    else current.egress.delete(address)
    const has = (list: Element[], { set, element }: Element) =>
      list.some((each) => each.set === set && each.element === element)
    return [
      ...(old ?? []).filter((each) => !has(wanted ?? [], each)).map((each) => deleteElement(names, each)),
      ...(wanted ?? []).filter((each) => !has(old ?? [], each)).map((each) => addElement(names, each)),
    ]
  }

  const applyOrLoad = async (commands: Command[]) => {
    if (commands.length === 0) return
    const changes = commands.filter((command) => typeof command !== 'string')
    const isAsked = changes.length === commands.length && (await changeAtOnce(names.table, changes))
    if (isAsked) return
    const lines = commands.flatMap((each) => (typeof each === 'string' ? each : commandsOf(names, each)))
    try {
      await applyRules(lines)
    } catch (error) {
      log.warn({ err: error }, 'firewall change refused; loading all of it')
      await load()
    }
  }

  return {
    load: () => inTurn(load),

    openPorts: (ports) =>
      change(({ ports: known }) => {
        for (const port of ports) known.set(port, null)
        return ports.map(openingPort)
      }),

    admit: ({ port, address, group }) =>
      change(({ members, ports }) => {
        const before = members.get(address)
        const moved = [...ports].filter(([other, of]) => of === address && other !== port)
        for (const [other] of moved) ports.set(other, null)
        members.set(address, group)
        ports.set(port, address)
        return [
          ...moved.map(([other]) => deleting(machineElement(other, address))),
          ...(before === undefined || before === group ? [] : memberElements(address, before).map(deleting)),
          ...(before === group ? [] : memberElements(address, group).map(adding)),
          adding(machineElement(port, address)),
          ...addStarting(address),
        ]
      }),

    closePorts: (ports) =>
      change(({ ports: known }) => {
        const gone = ports.filter((port) => known.has(port))
        const machines = gone.flatMap((port) => {
          const address = known.get(port)
          return address ? [deleting(machineElement(port, address))] : []
        })
        for (const port of gone) known.delete(port)
        return [...machines, ...gone.map(closingPort)]
      }),

    forget: (address) =>
      change((current) => {
        const group = current.members.get(address)
        current.members.delete(address)
        const freed = setEgress(current, address, null)
        return group === undefined ? freed : [...freed, ...memberElements(address, group).map(deleting)]
      }),

    restrict: (address, egress) =>
      change((current) => {
        const pins = current.egress.get(address)?.pins ?? []
        const next = egress && restrictionFor(egress, pinsWithin(pins, egress))
        return setEgress(current, address, next)
      }),

    pin: (address, pins) =>
      change((current) => {
        const before = current.egress.get(address)
        if (!before) return []
        return setEgress(current, address, { ...before, pins: withPins(before.pins, pins) })
      }),

    restrictionOf: (address) => state.egress.get(address) ?? null,

    reset: async ({ members, ports, egress }) => {
      const kept = await pinnedInKernel(names.table)
      await change((current) => {
        current.members = members
        current.ports = ports
        const restrictions = [...egress].map(([address, rules]) => {
          const pins = rules.mode === 'none' ? [] : (kept.get(address) ?? [])
          return [address, restrictionFor(rules, pins)] as const
        })
        current.egress = new Map(restrictions)
        return null
      })
    },

    setOpened: (uplinks) =>
      change((current) => {
        if (current.opened.join() === uplinks.join()) return []
        current.opened = uplinks
        return null
      }),

    repair: () =>
      inTurn(async () => {
        const generation = rulesGeneration()
        if (generation === foundGood) return false
        const found = await readTables(names.table)
        if (found && found.rules === loadedRules && sameElements(found, await present())) {
          foundGood = generation
          return false
        }
        await load()
        return true
      }),

    remove: () =>
      inTurn(async () => {
        await applyRules(
          ['inet', 'netdev'].flatMap((family) => [
            `add table ${family} ${names.table}`,
            `delete table ${family} ${names.table}`,
          ]),
        )
      }),
  }
}

/** What an earlier engine has pinned for programs that go on. */
async function pinnedInKernel(table: string): Promise<Map<string, Pin[]>> {
  const pins = new Map<string, Pin[]>()
  for (const line of (await readTables(table))?.egress ?? []) {
    const [set, machine = '', address = '', port = ''] = line.split(' ')
    if (set !== 'pinned' && set !== 'brokered') continue
    const pin = { name: null, address, port: set === 'pinned' ? Number(port) : 443 }
    pins.set(machine, [...(pins.get(machine) ?? []), pin])
  }
  return pins
}
