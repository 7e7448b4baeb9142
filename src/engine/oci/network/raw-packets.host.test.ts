// What a machine with raw sockets can send: frames that its own network stack would never make. Units in which containers
// may run have such sockets. They are sent in the namespace behind a sandbox, past anything that a sandbox might check.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lab, type NetworkProcess, openLab } from '../../../../test/support/network-lab/lab.ts'
import { GATEWAY_MAC } from './names.ts'
import type { Attachment } from './types.ts'

const BROADCAST = 'ff:ff:ff:ff:ff:ff'
const STRANGER = '02:00:00:00:00:66'
const [ICMP, IP_IN_IP, TCP, UDP, GRE, SCTP] = [1, 4, 6, 17, 47, 132]

let lab: Lab
let network: NetworkProcess
let own: string
let sender: Attachment
let sibling: Attachment
let stranger: Attachment
let strangers: Attachment

beforeAll(async () => {
  lab = await openLab()
  network = await lab.openNetwork()
  await network.recover([])
  const attach = (machineId: string, group: number) => network.attach({ machineId, group, address: null })
  sender = await attach('a1', 1)
  sibling = await attach('a2', 1)
  stranger = await attach('b1', 2)
  strangers = await attach('b2', 2)
  own = (await lab.inside(sender.namespacePath, 'cat', '/sys/class/net/eth0/address')).trim()
})
afterAll(() => lab?.close())

test('a frame made by hand reaches a sibling, as the stack’s own do', async () => {
  const arrived = await count(sibling.namespacePath, 'prerouting', `ip saddr ${sender.address}`)
  await send([toGateway(packet(sender.address, sibling.address, UDP))])
  await expect.poll(arrived).toBe(1)
})

test('no frame made by hand reaches another team’s machine', async () => {
  const { address } = stranger
  const arrived = await Promise.all(
    [stranger, strangers].map(({ namespacePath }) => count(namespacePath, 'prerouting', '')),
  )
  const sources = [sender.address, strangers.address, lab.gateway, '203.0.113.10', '0.0.0.0', '127.0.0.1']
  const protocols = [ICMP, IP_IN_IP, TCP, UDP, GRE, SCTP]
  const packets = sources.flatMap((from) => protocols.map((protocol) => packet(from, address, protocol)))
  const inside = packet(strangers.address, address, UDP)
  await send([
    ...packets.map(toGateway),
    // To all, to another's address, and from another's.
    ...packets.map((each) => frame(BROADCAST, own, '0800', each)),
    ...packets.map((each) => frame(STRANGER, own, '0800', each)),
    ...packets.map((each) => frame(GATEWAY_MAC, STRANGER, '0800', each)),
    // The second part of a packet, which has no ports.
    toGateway(packet(sender.address, address, UDP, { fragment: 100 })),
    toGateway(packet(sender.address, sibling.address, IP_IN_IP, { content: inside })),
    toGateway(packet(sender.address, lab.gateway, IP_IN_IP, { content: inside })),
    // In a virtual network, and in two.
    frame(GATEWAY_MAC, own, '8100', `00010800${inside}`),
    frame(GATEWAY_MAC, own, '88a8', `0001810000010800${inside}`),
    frame(GATEWAY_MAC, own, '86dd', `6${'0'.repeat(79)}`),
  ])
  await untilSent()
  expect(await Promise.all(arrived.map((each) => each()))).toEqual([0, 0])
})

test('no frame made by hand reaches what the host runs', async () => {
  const fromSender = `iifname "${sender.hostInterface}"`
  const taken = await count(lab.host, 'input', fromSender)
  const protocols = [ICMP, IP_IN_IP, TCP, UDP, GRE, SCTP]
  const sources = [sender.address, sibling.address, lab.gateway, '127.0.0.1']
  const packets = sources.flatMap((from) =>
    [lab.gateway, '192.0.2.2', '127.0.0.1'].flatMap((to) => protocols.map((each) => packet(from, to, each))),
  )
  await send([...packets.map(toGateway), ...packets.map((each) => frame(BROADCAST, own, '0800', each))])
  await untilSent()
  expect(await taken()).toBe(0)
})

test('no answer of a machine to ARP changes what the host knows', async () => {
  const known = () => lab.inside(lab.host, 'ip', 'neigh', 'show', 'dev', sender.hostInterface)
  const before = await known()
  const claims = [lab.gateway, stranger.address, sender.address].flatMap((address) =>
    ['0001', '0002'].map((kind) => {
      const claim = hex(STRANGER) + octets(address)
      const arp = `000108000604${kind}${claim}${hex(GATEWAY_MAC)}${octets(lab.gateway)}`
      return frame(kind === '0001' ? BROADCAST : GATEWAY_MAC, STRANGER, '0806', arp)
    }),
  )
  await send(claims)
  await untilSent()
  const lasting = (listing: string) => listing.replaceAll(/ (?:REACHABLE|STALE|DELAY|PROBE)/g, '')
  expect(lasting(await known())).toBe(lasting(before))
  expect(await known()).not.toContain(STRANGER)
})

function toGateway(content: string): string {
  return frame(GATEWAY_MAC, own, '0800', content)
}

function frame(to: string, from: string, type: string, content: string): string {
  return hex(to) + hex(from) + type + content
}

/** IPv4 with 32 bytes of content, unless there is another. */
function packet(
  from: string,
  to: string,
  protocol: number,
  { fragment = 0, content = `1b581b5800200000${'00'.repeat(24)}` } = {},
): string {
  const length = bytes(20 + content.length / 2, 2)
  const header = (sum: string) =>
    `4500${length}0001${bytes(fragment, 2)}40${bytes(protocol, 1)}${sum}${octets(from)}${octets(to)}`
  return header(bytes(checksum(header('0000')), 2)) + content
}

function checksum(header: string): number {
  const words = header.match(/.{4}/g) ?? []
  const sum = words.reduce((total, word) => total + Number.parseInt(word, 16), 0)
  return ~((sum & 0xffff) + (sum >>> 16)) & 0xffff
}

function bytes(value: number, length: number): string {
  return value.toString(16).padStart(2 * length, '0')
}

function octets(address: string): string {
  return address
    .split('.')
    .map((each) => bytes(Number(each), 1))
    .join('')
}

function hex(mac: string): string {
  return mac.replaceAll(':', '')
}

async function send(frames: string[]): Promise<void> {
  const script = `import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for frame in sys.argv[1:]: s.send(bytes.fromhex(frame))`
  await lab.inside(sender.namespacePath, 'python3', '-c', script, ...frames)
}

/** A frame that may pass, sent after the others, has arrived: so would they have. */
async function untilSent(): Promise<void> {
  const arrived = await count(sibling.namespacePath, 'prerouting', `ip saddr ${sender.address}`)
  await expect
    .poll(async () => {
      await send([toGateway(packet(sender.address, sibling.address, UDP))])
      return await arrived()
    })
    .toBeGreaterThan(0)
}

let counters = 0

/** Counts packets behind all rules of a hook, starting now. */
async function count(namespace: string, hook: string, match: string): Promise<() => Promise<number>> {
  const table = `raw${(counters += 1)}`
  const rules = `table inet ${table} {
    counter passing { }
    chain seen { type filter hook ${hook} priority 400; policy accept; ${match} counter name passing; }
  }`
  await lab.inside(namespace, 'nft', rules)
  return async () => {
    const listing = await lab.inside(namespace, 'nft', 'list', 'counter', 'inet', table, 'passing')
    return Number(/packets (\d+)/.exec(listing)?.[1])
  }
}
