// Reads back the rules in the kernel, to compare them with the wanted ones.

import { listAsJson } from './nft.ts'
import { egressSets, elementsOf } from './restrictions.ts'
import { portChain } from './firewall-elements.ts'
import { type FirewallState } from './firewall-rules.ts'

export type TableListing = {
  /** Chains and rules of both tables except the chains of interfaces, without counters and handles. */
  rules: string
  /** Names of the chains of interfaces. */
  portChains: string[]
  machines: string[]
  groups: string[]
  peers: string[]
  opened: string[]
  /** Of the sets of egress, each with its set's name. */
  egress: string[]
}

type Listed = Record<string, { family: string; name?: string; chain?: string; elem?: unknown[] }>

/** Returns null if either table is missing. */
export async function readTables(table: string): Promise<TableListing | null> {
  // One process per family: given both, nft only reads the last one.
  const families = await Promise.all([
    listAsJson<Listed>('table', 'inet', table),
    listAsJson<Listed>('table', 'netdev', table),
  ])
  if (families.includes(null)) return null
  const nftables = families.flatMap((entries) => entries ?? [])
  const ofKind = (kind: string) => nftables.flatMap((entry) => entry[kind] ?? [])
  const isPortChain = (name: string | undefined) => name?.startsWith('in-') ?? false
  const elements = (kind: 'set' | 'map', name: string) =>
    ofKind(kind)
      .filter((set) => set.name === name)
      .flatMap((set) => (set.elem ?? []).map(flatten))

  return {
    rules: JSON.stringify(
      [
        ofKind('chain').filter((chain) => !isPortChain(chain.name)),
        ofKind('rule').filter((rule) => !isPortChain(rule.chain)),
      ],
      (key, value: unknown) => (key === 'handle' || key === 'counter' ? undefined : value),
    ),
    portChains: ofKind('chain').flatMap(({ name }) => (name && isPortChain(name) ? [name] : [])),
    machines: elements('set', 'machines'),
    groups: elements('map', 'groups'),
    peers: elements('set', 'peers'),
    opened: elements('set', 'opened'),
    egress: egressSets.flatMap((name) =>
      elements(name === 'stacks' ? 'map' : 'set', name).map((element) => `${name} ${element}`),
    ),
  }
}

export function sameElements(found: TableListing, wanted: FirewallState): boolean {
  const machines = [...wanted.ports].flatMap(([port, address]) => (address ? [`${port} ${address}`] : []))
  const members = [...wanted.members]
  return (
    same(found.portChains, [...wanted.ports.keys()].map(portChain)) &&
    same(found.machines, machines) &&
    same(
      found.groups,
      members.map(([address, group]) => `${address} ${group}`),
    ) &&
    same(
      found.peers,
      members.map(([address, group]) => `${group} ${address}`),
    ) &&
    same(found.opened, wanted.opened) &&
    same(
      found.egress,
      [...wanted.egress].flatMap(([address, restriction]) =>
        elementsOf(address, restriction).map(
          ({ set, element }) => `${set} ${element.replaceAll(/ [.:] /g, ' ')}`,
        ),
      ),
    )
  )
}

function same(left: string[], right: string[]): boolean {
  return left.length === right.length && new Set([...left, ...right]).size === left.length
}

/** An element as nft's JSON nests it, `{ elem: { val: { concat: [...] } } }` or `[key, value]`, in one line. */
function flatten(element: unknown): string {
  if (Array.isArray(element)) return element.map(flatten).join(' ')
  if (typeof element !== 'object' || element === null) return String(element)
  const { elem, val, concat, prefix } = element as Partial<Record<'elem' | 'val' | 'concat', unknown>> & {
    prefix?: { addr: string; len: number }
  }
  if (prefix) return `${prefix.addr}/${prefix.len}`
  return flatten(elem ?? val ?? concat ?? '')
}
