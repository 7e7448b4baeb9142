// Which hosts and machines can reach each other (design 3 "Network"; reliability I3, I4, I5, I6, I7, I9, I21), with real packets.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  DNS_PORT,
  FORBIDDEN,
  gatewayOf,
  HOST,
  type Lab,
  NEIGHBOUR,
  type NetworkProcess,
  newInstance,
  openLab,
  PUBLIC,
} from '../../../../test/support/network-lab/lab.ts'
import type { Attachment } from './types.ts'

let lab: Lab
let witnesses = 0
let network: NetworkProcess
const machines: Record<string, Attachment> = {}
const machine = (name: string): Attachment => {
  const found = machines[name]
  if (!found) throw new Error(`no machine ${name}`)
  return found
}

const PORT = 7000
/** The host serves this port and no machine does. */
const HOST_PORT = 7001
const groups = { a1: 1, a2: 1, b1: 2, b2: 2 }

beforeAll(async () => {
  lab = await openLab()
  network = await lab.openNetwork()
  await network.recover([])
  for (const [machineId, group] of Object.entries(groups)) {
    machines[machineId] = await network.attach({ machineId, group, address: null })
    await lab.serve(machine(machineId).namespacePath, `0.0.0.0:${PORT}`)
  }
  // One server per address: a reply from a different source address would be dropped by the client.
  await lab.serve(lab.outside, `${PUBLIC}:${PORT}`, `${PUBLIC}:25`)
  await lab.serve(lab.host, ...[lab.gateway, HOST, '127.0.0.2'].map((address) => `${address}:${HOST_PORT}`))
  await lab.serve(lab.host, `${lab.gateway}:${DNS_PORT}`)
})
afterAll(() => lab?.close())

describe('network access between machines', () => {
  const pairs = Object.keys(groups).flatMap((from) =>
    Object.keys(groups).flatMap((to) => (from === to ? [] : [[from, to] as const])),
  )
  test.each(pairs)('from %s to %s is allowed only within a group', async (from, to) => {
    const isAllowed = from[0] === to[0]
    const { namespacePath } = machine(from)
    const target = machine(to).address
    const answers = await lab.reach(namespacePath, `tcp://${target}:${PORT}`, `udp://${target}:${PORT}`)
    // Members of a group see each other's own addresses, not the gateway's.
    expect(answers).toEqual(isAllowed ? Array(2).fill(machine(from).address) : [null, null])
    expect(await lab.ping(namespacePath, target)).toBe(isAllowed)
  })

  test('is refused for a machine that forges the source address of another group', async () => {
    const { namespacePath, hostInterface } = machine('a1')
    const checkBySource = (value: number) =>
      lab.inside(lab.host, 'sysctl', '-q', '-w', `net.ipv4.conf.${hostInterface}.rp_filter=${value}`)
    const stolen = machine('b1').address
    // Replies go to the owner of the forged address, so the test counts packets at the target.
    const arrived = [
      await countPackets(machine('b2').namespacePath, `input ip saddr ${stolen}`),
      await countPackets(lab.outside, `input ip daddr ${PUBLIC}`),
    ]
    // Without reverse path filtering, only the nftables rule protects.
    await checkBySource(0)
    await inMachine('a1', 'addr', 'add', `${stolen}/32`, 'dev', 'eth0')
    const target = machine('b2').address
    const answers = await lab.reach(
      namespacePath,
      `tcp://${target}:${PORT}?from=${stolen}`,
      `udp://${target}:${PORT}?from=${stolen}`,
      `tcp://${PUBLIC}:${PORT}?from=${stolen}`,
      `udp://${lab.gateway}:53?from=${stolen}`,
    )
    await inMachine('a1', 'addr', 'del', `${stolen}/32`, 'dev', 'eth0')
    await checkBySource(1)
    expect(answers).toEqual([null, null, null, null])
    expect(await Promise.all(arrived.map((count) => count()))).toEqual([0, 0])
    // Control: the same counter does count packets that arrive.
    await lab.reach(machine('b1').namespacePath, `udp://${target}:${PORT}`)
    expect(await arrived[0]?.()).toBeGreaterThan(0)
  })

  test('does not carry multicast or broadcast', async () => {
    const { namespacePath } = machine('a1')
    await lab.reach(namespacePath, `udp://224.0.0.251:${PORT}`, `udp://255.255.255.255:${PORT}`)
    expect(await lab.leaks()).toEqual({ to: 0, from: 0 })
  })

  test('does not include IPv6', async () => {
    const { namespacePath, hostInterface } = machine('a1')
    expect(await lab.inside(namespacePath, 'ip', '-6', 'address', 'show', 'dev', 'eth0')).toBe('')
    expect(await lab.inside(lab.host, 'ip', '-6', 'address', 'show', 'dev', hostInterface)).toBe('')
  })
})

describe('the host', () => {
  test('serves a machine only DNS', async () => {
    const { namespacePath, address } = machine('a1')
    expect(await lab.reach(namespacePath, `udp://${lab.gateway}:53`, `tcp://${lab.gateway}:53`)).toEqual([
      address,
      address,
    ])
    const closed = [lab.gateway, HOST].flatMap((target) => [
      `tcp://${target}:${HOST_PORT}`,
      `udp://${target}:${HOST_PORT}`,
      `tcp://${target}:${DNS_PORT}`,
      `udp://${target}:${DNS_PORT}`,
    ])
    expect(await lab.reach(namespacePath, ...closed)).toEqual(closed.map(() => null))
    expect(await lab.ping(namespacePath, HOST)).toBe(false)
  })

  test('refuses at once what it does not serve to machines', async () => {
    const ports = [HOST_PORT, DNS_PORT, 7999]
    const targets = [lab.gateway, HOST].flatMap((address) => ports.map((port) => `${address}/${port}`))
    // The kernel sends a machine six ICMP errors at once, and then one a second: one by UDP is enough.
    const script = `for target in "$@"; do timeout 10 bash -c "exec 3<>/dev/tcp/$target"; echo $?; done
      timeout 10 bash -c "exec 3<>/dev/udp/$1; echo hello >&3; read -r <&3"; echo $?`
    const answers = await lab.inside(machine('b1').namespacePath, 'bash', '-c', script, 'bash', ...targets)
    expect(answers).toBe('1\n'.repeat(targets.length + 1))
  })

  test('is protected from a machine that routes to its loopback addresses', async () => {
    const { namespacePath } = machine('a1')
    await lab.inside(namespacePath, 'sysctl', '-q', '-w', 'net.ipv4.conf.all.route_localnet=1')
    await inMachine('a1', 'route', 'del', 'local', '127.0.0.0/8', 'dev', 'lo', 'table', 'local')
    await inMachine('a1', 'route', 'add', '127.0.0.2/32', 'via', lab.gateway, 'src', machine('a1').address)
    const targets = [`tcp://127.0.0.2:${HOST_PORT}`, `udp://127.0.0.2:${HOST_PORT}`]
    expect(await lab.reach(namespacePath, ...targets)).toEqual([null, null])
    await inMachine('a1', 'route', 'del', '127.0.0.2/32')
    await inMachine('a1', 'route', 'add', 'local', '127.0.0.0/8', 'dev', 'lo', 'table', 'local')
  })

  test('reaches every machine from the gateway address', async () => {
    const targets = Object.keys(groups).map((name) => `tcp://${machine(name).address}:${PORT}`)
    expect(await lab.reach(lab.host, ...targets)).toEqual(targets.map(() => lab.gateway))
  })
})

describe('network access to the outside', () => {
  test('reaches the internet with the host’s source address', async () => {
    const targets = [`tcp://${PUBLIC}:${PORT}`, `udp://${PUBLIC}:${PORT}`]
    expect(await lab.reach(machine('a1').namespacePath, ...targets)).toEqual([HOST, HOST])
    expect(await lab.ping(machine('b1').namespacePath, PUBLIC)).toBe(true)
  })

  test('is blocked to metadata services and private networks', async () => {
    const targets = FORBIDDEN.flatMap((address) => [`tcp://${address}:${PORT}`, `udp://${address}:${PORT}`])
    expect(await lab.reach(machine('a1').namespacePath, ...targets)).toEqual(targets.map(() => null))
    for (const address of FORBIDDEN) expect(await lab.ping(machine('a1').namespacePath, address)).toBe(false)
    expect(await lab.leaks()).toEqual({ to: 0, from: 0 })
  })

  test('is blocked to unused addresses of the subnet', async () => {
    const free = machine('a1').address.replace(/\d+$/, '250')
    expect(await lab.reach(machine('a1').namespacePath, `tcp://${free}:${PORT}`)).toEqual([null])
    expect(await lab.leaks()).toEqual({ to: 0, from: 0 })
  })

  test('is blocked to the SMTP port', async () => {
    expect(await lab.reach(machine('a1').namespacePath, `tcp://${PUBLIC}:25`)).toEqual([null])
  })

  test('is not possible in reverse for a neighbour with a route to the machines', async () => {
    const { address } = machine('a1')
    const targets = [`tcp://${address}:${PORT}`, `udp://${address}:${PORT}`]
    expect(await lab.reach(lab.outside, ...targets)).toEqual([null, null])
    expect(await lab.ping(lab.outside, address)).toBe(false)
  })

  test('does not turn the host into a router unless the operator enables forwarding', async () => {
    const lan = machine('a1').address.replace(/^10\.\d+/, '198.51')
    // A network behind the host that does not belong to Berth.
    await lab.inside(lab.host, 'ip', 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan1')
    await lab.inside(lab.host, 'ip', 'link', 'set', 'lan0', 'up')
    await lab.inside(lab.host, 'ip', 'link', 'set', 'lan1', 'up')
    await lab.inside(lab.host, 'ip', 'neigh', 'add', lan, 'lladdr', '02:00:00:00:00:09', 'dev', 'lan0')
    await lab.inside(lab.host, 'ip', 'route', 'add', `${lan}/32`, 'dev', 'lan0')
    await lab.inside(lab.outside, 'ip', 'route', 'add', `${lan}/32`, 'via', HOST)
    const passed = await countPackets(lab.host, `postrouting ip daddr ${lan}`)
    const knock = () => lab.reach(lab.outside, `udp://${lan}:${PORT}`)

    await knock()
    expect(await passed()).toBe(0)
    await lab.inside(lab.host, 'sysctl', '-q', '-w', 'net.ipv4.ip_forward=1')
    await expect.poll(() => knock().then(passed), { timeout: 8000 }).toBeGreaterThan(0)
    // The host forwards now, but still not into machines.
    const { address, namespacePath } = machine('a1')
    const arrived = await countPackets(namespacePath, `input ip saddr ${NEIGHBOUR}`)
    await lab.reach(lab.outside, `tcp://${address}:${PORT}`, `udp://${address}:${PORT}`)
    expect(await arrived()).toBe(0)
    await lab.inside(lab.host, 'sysctl', '-q', '-w', 'net.ipv4.ip_forward=0')
    await lab.inside(lab.host, 'ip', 'link', 'del', 'lan0')
  })
})

test('one machine cannot fill the connection tracking table of the host', async () => {
  // Entries of earlier tests would expire during the count.
  await lab.inside(lab.host, 'conntrack', '-F')
  const before = Number(await lab.inside(lab.host, 'conntrack', '-C'))
  const flood = `
    const socket = require('dgram').createSocket('udp4')
    let port = 10000
    const more = () => { for (let i = 0; i < 50; i++) socket.send('x', port++, '${PUBLIC}'); if (port < 30000) setTimeout(more, 5); else setTimeout(() => process.exit(0), 200) }
    socket.bind(0, more)`
  await lab.inside(machine('a1').namespacePath, process.execPath, '-e', flood)
  const flows = Number(await lab.inside(lab.host, 'conntrack', '-C')) - before
  expect(flows).toBeGreaterThan(1000)
  expect(flows).toBeLessThan(6000)
  expect(await lab.reach(machine('a2').namespacePath, `tcp://${PUBLIC}:${PORT}`)).toEqual([HOST])
})

test('the image puller cannot connect to private addresses except those the operator allows', async () => {
  const GID = 54_321
  const puller = { gids: [GID], allowed: [{ address: '127.0.0.2', port: HOST_PORT }] }
  const second = await lab.openNetwork({ ...newInstance(), subnet: '10.251.0.0/16' }, puller)
  await second.recover([])
  try {
    await lab.serve(lab.outside, `10.200.0.1:${PORT}`)
    await lab.serve(lab.host, '127.0.0.3:7002')
    const targets = [
      `tcp://${PUBLIC}:${PORT}`,
      `tcp://127.0.0.2:${HOST_PORT}`,
      `tcp://10.200.0.1:${PORT}`,
      'tcp://127.0.0.3:7002',
    ]
    const [open, allowed, ...closed] = await lab.reachAs(GID, lab.host, ...targets)
    expect([open, allowed, ...closed]).toEqual([HOST, '127.0.0.1', null, null])
    // The rule applies to the puller's group only: other processes of the host reach all targets.
    expect(await lab.reach(lab.host, ...targets)).not.toContain(null)
  } finally {
    await second.close({ removeAll: true })
  }
})

test('two instances on one host cannot reach each other’s machines or resolvers', async () => {
  const other = { ...newInstance(), subnet: '10.250.0.0/16' }
  const second = await lab.openNetwork(other)
  await second.recover([])
  try {
    const guest = await second.attach({ machineId: 'x', group: 1, address: null })
    await lab.serve(guest.namespacePath, `0.0.0.0:${PORT}`)
    const both = [
      await lab.reach(
        machine('a1').namespacePath,
        `tcp://${guest.address}:${PORT}`,
        `udp://${gatewayOf(other)}:53`,
      ),
      await lab.reach(
        guest.namespacePath,
        `tcp://${machine('a1').address}:${PORT}`,
        `udp://${lab.gateway}:53`,
      ),
    ]
    expect(both.flat()).toEqual([null, null, null, null])
    expect(await lab.reach(guest.namespacePath, `tcp://${PUBLIC}:${PORT}`)).toEqual([HOST])
  } finally {
    await second.close({ removeAll: true })
  }
  // The second instance may have enabled forwarding on the uplink. It disables it when it closes, and the first enables it again.
  await expect
    .poll(() => lab.reach(machine('a1').namespacePath, `tcp://${PUBLIC}:${PORT}`), { timeout: 20_000 })
    .toEqual([HOST])
})

async function inMachine(name: string, ...args: string[]): Promise<void> {
  await lab.inside(machine(name).namespacePath, 'ip', ...args)
}

/** Counts the packets that match a condition at a hook of a namespace, starting now. */
async function countPackets(namespace: string, condition: string): Promise<() => Promise<number>> {
  const table = `witness${(witnesses += 1)}`
  const [hook, ...match] = condition.split(' ')
  const rule = `table ip ${table} {
    counter passing { }
    chain seen {
      type filter hook ${hook} priority 0; policy accept;
      ${match.join(' ')} counter name passing
    }
  }`
  await lab.inside(namespace, 'nft', rule)
  return async () => {
    const listing = await lab.inside(namespace, 'nft', 'list', 'counter', 'ip', table, 'passing')
    return Number(/packets (\d+)/.exec(listing)?.[1])
  }
}
