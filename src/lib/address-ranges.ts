// Address ranges that are not public internet hosts, from which machines, image pulls and the resolver must stay
// away. The firewall and the checks in code share this list.

import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** IPv4 ranges without public hosts, each with its purpose. */
export const privateRanges4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // RFC 1918
  '100.64.0.0/10', // carrier-grade NAT; metadata of Alibaba Cloud
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's metadata and wire server
  '169.254.0.0/16', // link-local, and with it most clouds' metadata
  '172.16.0.0/12', // RFC 1918
  '192.0.0.0/24', // protocol assignments; metadata of Oracle Cloud
  '192.168.0.0/16', // RFC 1918
  '198.18.0.0/15', // benchmarking of networks
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
] as const

/** IPv6: everything except global unicast, and ranges that embed an IPv4 address. */
export const privateRanges6 = [
  '::/3', // unspecified, loopback, IPv4-mapped, NAT64
  '2001::/23', // protocol assignments, with Teredo
  '2002::/16', // 6to4
  '4000::/2', // not allotted
  '8000::/1', // not allotted; unique local, link-local, multicast
] as const

// One list per family: in a shared list an IPv4 address also matches as a mapped IPv6 address.
const private4 = blockListOf(privateRanges4, 'ipv4')
const private6 = blockListOf(privateRanges6, 'ipv6')

/**
 * Returns true for the literal address of a public host; false for anything else, including text that is not an
 * address.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !private4.check(address, 'ipv4')
  return isIPv6(address) && !private6.check(address, 'ipv6')
}

/** An address, or a range such as `10.0.0.0/8`. */
export function isAddressRange(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/')
  const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1
  if (bits < 0 || more.length > 0) return false
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
}

/** Returns a function that says whether an address is in the list or in one of its ranges. */
export function addressMatcher(ranges: readonly string[]): (address: string) => boolean {
  const whole = ranges.map((range) => {
    const bits = isIPv4(range) ? '/32' : '/128'
    return range.includes('/') ? range : `${range}${bits}`
  })
  const lists = {
    ipv4: blockListOf(
      whole.filter((range) => !range.includes(':')),
      'ipv4',
    ),
    ipv6: blockListOf(
      whole.filter((range) => range.includes(':')),
      'ipv6',
    ),
  }
  return (address) => {
    const plain = unmapped(address)
    if (isIPv4(plain)) return lists.ipv4.check(plain, 'ipv4')
    return isIPv6(plain) && lists.ipv6.check(plain, 'ipv6')
  }
}

/** Returns the IPv4 address of an IPv4-mapped IPv6 address, as a dual-stack socket reports it. */
export function unmapped(address: string): string {
  const plain = address.toLowerCase().startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return isIPv4(plain) ? plain : address
}

function blockListOf(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network, prefix] = range.split('/')
    list.addSubnet(network ?? '', Number(prefix), family)
  }
  return list
}
