// The rules for machines, as text for nft (design 3 "Network"). Pure: state in, commands out.
//
// Two tables of one name, always changed in one transaction. `inet` has the rules; its base chains accept by default
// and jump to ours only for our own interfaces, so the host's other traffic is unchanged. `netdev` has one ingress
// chain per interface and makes a flush fail closed: machines send to a hardware address that no interface has
// (names.ts), the kernel drops such frames, and only `admit` redirects them to the host.
//
// A packet from a machine passes, in this order: ingress `admit` (IPv4, no private destination), `enter` (its source
// is the machine's own address; siblings only of its group), `limits` (new flows), `dns` (the resolver's port), then
// `from_machine` if it is forwarded or `to_host` if it is for the host. Everything else is dropped; what the host does not
// serve is refused at once, as by a host that does not listen. A packet to a
// sibling that does not run is admitted too: it ends in the route that discards (host-routes.ts) without an answer,
// so the sender's kernel retries, and is served once the machine has been woken and listens. For a while after its
// start, a machine cannot refuse a connection either. An address that is no sibling's is refused at once. Packets
// between machines are counted in a separate table (traffic.ts).
//
// A machine that may not reach everything is an element of `narrowed`. Each new flow of it is looked at in `narrowed`:
// siblings by `to_sibling`, hosts outside by `to_listed`, and its TCP ports 80 and 443 and its DNS are redirected to
// the egress process and to a resolver of their own (`by_name`), but for addresses in ranges of its rules (`by_address`).
// Where neither listens, the kernel refuses. Before all that, `to_denied` refuses the addresses that it is denied.
//
// Of a machine in `brokers`, which may reach everything and has secrets, only the connections to the hosts of those are
// redirected: their addresses are in `brokered` before the resolver answers (`by_secret`).

import { privateRanges4 } from '../../../lib/address-ranges.ts'
import { addElement, commandsOf, machineElement, memberElements, openingPort } from './firewall-elements.ts'
import { egressChains, elementsOf, pullerChains, type Pullers } from './firewall-processes.ts'
import { GATEWAY_MAC, type Names } from './names.ts'
import { maskOf } from './addresses.ts'
import {
  deniedOf,
  elementsOf as egressElementsOf,
  networksOf,
  rangePrefixes,
  rangesOf,
  type Restriction,
} from './restrictions.ts'

export type FirewallState = {
  /** Address → network group, as long as a machine has the address, running or not. */
  members: Map<string, number>
  /** Interface → address of its machine; null while it is only prepared. */
  ports: Map<string, string | null>
  /** Uplinks that forward only because of us (uplinks.ts). */
  opened: string[]
  /** Address → what its machine may reach, for those that are restricted or of a stack. */
  egress: Map<string, Restriction>
}

/** Where the egress process and the resolver for restricted machines listen on the gateway address. */
export type EgressPorts = { http: number; tls: number; dns: number }

export type TableOptions = {
  names: Names
  dnsPort: number
  pullers: Pullers
  egressPorts: EgressPorts
  /** The group of the egress process. */
  egressGid: number | null
}

// Generous for a workload, but small compared with the host's conntrack table: one machine cannot fill it (I21).
const MAX_FLOWS = 4096
const NEW_FLOWS_PER_SECOND = 300
const NEW_FLOWS_BURST = 3000

const rangeSets = rangePrefixes
  .flatMap((prefix) => [
    `set ${rangesOf(prefix)} { type ipv4_addr . ipv4_addr . inet_service; }`,
    `set ${networksOf(prefix)} { type ipv4_addr . ipv4_addr; }`,
    `set ${deniedOf(prefix)} { type ipv4_addr . ipv4_addr; }`,
  ])
  .join('\n  ')
const rangeRules = rangePrefixes
  .flatMap((prefix) => [
    `ip saddr . ip daddr & ${maskOf(prefix)} . tcp dport @${rangesOf(prefix)} accept`,
    `ip saddr . ip daddr & ${maskOf(prefix)} @${networksOf(prefix)} accept`,
  ])
  .join('\n    ')
const deniedRules = rangePrefixes
  .map((prefix) => `ip saddr . ip daddr & ${maskOf(prefix)} @${deniedOf(prefix)} goto refused`)
  .join('\n    ')

/** As long as a database may take from its start until it listens. */
const MAY_START_FOR = '30s'

/**
 * Renders both tables completely, to replace the existing ones in one transaction: there is no moment without rules.
 */
export function renderTables(options: TableOptions, state: FirewallState): string {
  const { table } = options.names
  const elements = [
    ...[...state.ports.keys()].flatMap((port) => commandsOf(options.names, openingPort(port))),
    ...[...state.members].flatMap(([address, group]) =>
      memberElements(address, group).map((each) => addElement(options.names, each)),
    ),
    ...[...state.ports].flatMap(([port, address]) =>
      address ? [addElement(options.names, machineElement(port, address))] : [],
    ),
    ...[...state.egress].flatMap(([address, restriction]) =>
      egressElementsOf(address, restriction).map((each) => addElement(options.names, each)),
    ),
  ]
  return [
    `add table inet ${table}`,
    `delete table inet ${table}`,
    `add table netdev ${table}`,
    `delete table netdev ${table}`,
    netdevTable(options.names),
    inetTable(options, state),
    ...elements,
    '',
  ].join('\n')
}

function netdevTable({ table, subnet }: Names): string {
  return `table netdev ${table} {
  ${REFUSED}
  chain admit {
    ether type != ip drop
    ether daddr != ${GATEWAY_MAC} drop
    ip daddr != ${subnet} ip daddr @refused counter reject with icmp type admin-prohibited
    meta pkttype set host accept
  }
}`
}

function inetTable(options: TableOptions, state: FirewallState): string {
  const { names, dnsPort, pullers, egressPorts, egressGid } = options
  const { table, subnet, gateway } = names
  const ours = `"${names.interfacePrefix}*"`
  return `table inet ${table} {
  map groups { type ipv4_addr : mark; }
  set peers { type mark . ipv4_addr; }
  set machines { type ifname . ipv4_addr; counter; }
  set starting { type ipv4_addr; flags timeout; timeout ${MAY_START_FOR}; }
  set opened { type ifname; ${elementsOf(state.opened.map((name) => `"${name}"`))} }
  set narrowed { type ipv4_addr; }
  set listed { type ipv4_addr; }
  set apart { type ipv4_addr; }
  map stacks { type ipv4_addr : mark; }
  set stackmates { type mark . ipv4_addr; }
  set pinned { type ipv4_addr . ipv4_addr . inet_service; }
  set brokers { type ipv4_addr; }
  set brokered { type ipv4_addr . ipv4_addr; }
  set deniers { type ipv4_addr; }
  ${rangeSets}
  ${REFUSED}
  set flows { type ipv4_addr; flags dynamic; size 65535; }
  set rates { type ipv4_addr; flags dynamic; size 65535; timeout 1m; }

  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname ${ours} jump enter
  }
  chain enter {
    meta nfproto != ipv4 counter drop
    iifname . ip saddr != @machines counter drop
    ip daddr ${gateway} accept
    ip daddr ${subnet} ip saddr @starting ${CONNECTION_REFUSED} drop
    ip daddr ${subnet} meta mark set ip saddr map @groups meta mark . ip daddr @peers meta mark set 0 accept
    ip daddr ${subnet} counter reject with icmp type host-unreachable
  }

  chain bound {
    type filter hook prerouting priority mangle; policy accept;
    iifname ${ours} ct state new jump limits
  }
  chain limits {
    update @rates { ip saddr limit rate over ${NEW_FLOWS_PER_SECOND}/second burst ${NEW_FLOWS_BURST} packets } counter drop
    add @flows { ip saddr ct count over ${MAX_FLOWS} } counter drop
    ip saddr @narrowed jump narrowed
  }
  chain narrowed {
    ip daddr ${gateway} return
    ip daddr ${subnet} jump to_sibling
    ip saddr @deniers jump to_denied
    ip saddr @listed jump to_listed
  }
  chain to_denied {
    ${deniedRules}
  }
  chain refused {
    meta l4proto tcp counter reject with tcp reset
    ${REFUSED_UDP}
    counter reject with icmp type admin-prohibited
  }
  chain to_sibling {
    ip saddr != @apart accept
    meta mark set ip saddr map @stacks meta mark . ip daddr @stackmates meta mark set 0 accept
    ${REFUSED_UDP}
    counter reject with icmp type admin-prohibited
  }
  chain to_listed {
    tcp dport { 80, 443 } accept
    ip saddr . ip daddr . tcp dport @pinned accept
    ${rangeRules}
    goto refused
  }

  chain dns {
    type nat hook prerouting priority dstnat; policy accept;
    iifname ${ours} ip saddr @listed jump by_name
    iifname ${ours} ip saddr @brokers jump by_secret
    iifname ${ours} ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 dnat ip to ${gateway}:${dnsPort}
  }

  chain by_name {
    ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 dnat ip to ${gateway}:${egressPorts.dns}
    ip saddr . ip daddr @brokered tcp dport 443 dnat ip to ${gateway}:${egressPorts.tls}
    tcp dport { 80, 443 } jump by_address
    ip daddr != ${subnet} tcp dport 80 dnat ip to ${gateway}:${egressPorts.http}
    ip daddr != ${subnet} tcp dport 443 dnat ip to ${gateway}:${egressPorts.tls}
  }

  chain by_address {
    ${rangeRules}
  }

  chain by_secret {
    ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 dnat ip to ${gateway}:${egressPorts.dns}
    ip saddr . ip daddr @brokered tcp dport 443 dnat ip to ${gateway}:${egressPorts.tls}
  }

  chain input {
    type filter hook input priority filter; policy accept;
    iifname ${ours} jump to_host
  }
  chain to_host {
    ct state established,related accept
    ip daddr ${gateway} meta l4proto { tcp, udp } th dport { ${dnsPort}, ${egressPorts.dns} } ct status dnat accept
    ip daddr ${gateway} tcp dport { ${egressPorts.http}, ${egressPorts.tls} } ct status dnat accept
    ct state invalid counter drop
    meta l4proto tcp counter reject with tcp reset
    ${REFUSED_UDP}
    counter drop
  }

  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname ${ours} jump from_machine
    oifname ${ours} jump to_machine
    iifname @opened ct state new counter drop
  }
  chain from_machine {
    ip daddr ${subnet} oifname ${ours} ct status ! dnat accept
    ip daddr ${subnet} counter drop
    ct state invalid counter drop
    ct state established,related accept
    ip daddr @refused counter reject with icmp type admin-prohibited
    tcp dport 25 counter reject with tcp reset
    tcp flags syn tcp option maxseg size set rt mtu
    accept
  }
  chain to_machine {
    ct state established,related accept
    counter drop
  }

  chain uplink {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet} oifname != ${ours} masquerade
  }
${pullerChains(pullers)}${egressChains(egressGid)}}`
}

/**
 * In both tables: in `netdev` before anything else, and in `inet` again for packets that a rule of the host
 * redirects.
 */
const REFUSED = `set refused { type ipv4_addr; flags interval; auto-merge; ${elementsOf(privateRanges4)} }`

/** The answer to a first segment; a reset of an existing connection has another number, or no ACK. */
const CONNECTION_REFUSED = 'tcp flags & (rst | ack) == rst | ack tcp sequence 0'

/** The only answer that a sandbox's network stack gives to a program by UDP, so that QUIC falls back at once. */
const REFUSED_UDP = 'meta l4proto udp counter reject with icmp type port-unreachable'
