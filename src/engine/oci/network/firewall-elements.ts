// What changes in the firewall's tables (firewall-rules.ts) with each machine: elements of their sets and chains of interfaces,
// as the kernel takes them and as text for nft.

import type { Names } from './names.ts'
import type { ElementChange, PortChange } from './netlink.ts'
import type { Element } from './restrictions.ts'

/** An element as nft writes it and as the kernel has it. */
export type MachineElement = Element & { key: Buffer; value?: Buffer }
export type MachineChange = (ElementChange & Element) | PortChange

/** The chain that takes from interfaces what the others then judge. */
const ADMIT = 'admit'

const INTERFACE_BYTES = 16
const ADDRESS_BYTES = 4
const MARK_BYTES = 4

/** What comes in at an interface is dropped until it is a machine's. */
export function openingPort(port: string): MachineChange {
  return { op: 'open', chain: portChain(port), port, jump: ADMIT }
}

export function closingPort(port: string): MachineChange {
  return { op: 'close', chain: portChain(port) }
}

/** Which machine an interface belongs to. */
export function machineElement(port: string, address: string): MachineElement {
  const key = Buffer.alloc(INTERFACE_BYTES + ADDRESS_BYTES)
  key.write(port)
  addressBytes(address).copy(key, INTERFACE_BYTES)
  return { set: 'machines', element: `"${port}" . ${address}`, key }
}

/** The machine is about to start. An element already in the set would keep its expiry, so it is removed first. */
export function addStarting(address: string): MachineChange[] {
  const element = { set: 'starting', element: address, key: addressBytes(address) }
  return [adding(element), deleting(element), adding(element)]
}

export function addElement({ table }: Names, { set, element }: Element): string {
  return `add element inet ${table} ${set} { ${element} }`
}

/** nft deletes an entry of a map by its key alone. */
export function deleteElement({ table }: Names, { set, element }: Element): string {
  return `delete element inet ${table} ${set} { ${element.split(' : ')[0]} }`
}

/** What makes the machine with this address one of its group. */
export function memberElements(address: string, group: number): MachineElement[] {
  // Marks are in the machine's own byte order.
  const mark = Buffer.alloc(MARK_BYTES)
  mark.writeUInt32LE(group)
  const key = addressBytes(address)
  return [
    { set: 'groups', element: `${address} : ${group}`, key, value: mark },
    { set: 'peers', element: `${group} . ${address}`, key: Buffer.concat([mark, key]) },
  ]
}

export function adding(element: MachineElement): MachineChange {
  return { op: 'add', ...element }
}

export function deleting({ set, element, key }: MachineElement): MachineChange {
  return { op: 'delete', set, element, key }
}

/** The same as commands of nft. */
export function commandsOf(names: Names, change: MachineChange): string[] {
  const chain = `chain netdev ${names.table}`
  const rule = `rule netdev ${names.table}`
  switch (change.op) {
    case 'add':
      return [addElement(names, change)]
    case 'delete':
      return [deleteElement(names, change)]
    case 'open':
      return [
        `add ${chain} ${change.chain} { type filter hook ingress device "${change.port}" priority 0; policy drop; }`,
        `add ${rule} ${change.chain} jump ${change.jump}`,
      ]
    case 'close':
      return [`delete ${chain} ${change.chain}`]
  }
}

function addressBytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number))
}

/** The chain of an interface: `in-7` for `b1a2b-7`. */
export function portChain(port: string): string {
  return `in-${port.slice(port.indexOf('-') + 1)}`
}
