// The rules for processes of Berth that connect to untrusted addresses: image pulls, and the egress process. Chains of the tables
// in firewall-rules.ts.

import { privateRanges6 } from '../../../lib/address-ranges.ts'

export type Pullers = {
  /** Groups of processes that fetch from untrusted addresses. */
  gids: number[]
  /** Private IPv4 services that they may reach anyway: mirrors and proxies of the operator. */
  allowed: { address: string; port: number }[]
}

/** Image pulls connect to untrusted addresses, so they may not reach private services (reliability S15). */
export function pullerChains({ gids, allowed }: Pullers): string {
  if (gids.length === 0) return ''
  const services = allowed.map(({ address, port }) => `${address} . ${port}`)
  return `
  set pullers_allowed { type ipv4_addr . inet_service; ${elementsOf(services)} }
  set refused6 { type ipv6_addr; flags interval; auto-merge; ${elementsOf(privateRanges6)} }
  chain output {
    type filter hook output priority filter; policy accept;
    meta skgid { ${gids.join(', ')} } jump from_puller
  }
  chain from_puller {
    meta l4proto { tcp, udp } th dport 53 accept
    ip daddr . tcp dport @pullers_allowed accept
    ip daddr @refused counter reject
    ip6 daddr @refused6 counter reject
  }
`
}

/**
 * The egress process connects where machines ask it to, by names that strangers can point anywhere: to public hosts,
 * at the two ports it serves, and never to this host.
 */
export function egressChains(gid: number | null): string {
  if (gid === null) return ''
  return `
  chain egress_output {
    type filter hook output priority filter; policy accept;
    meta skgid ${gid} jump from_egress
  }
  chain from_egress {
    ct state established,related accept
    meta l4proto { tcp, udp } th dport 53 accept
    meta nfproto ipv6 counter reject
    ip daddr @refused counter reject
    oifname "lo" counter reject
    tcp dport { 80, 443 } accept
    counter reject
  }
`
}

export function elementsOf(elements: readonly string[]): string {
  return elements.length === 0 ? '' : `elements = { ${elements.join(', ')} }`
}
