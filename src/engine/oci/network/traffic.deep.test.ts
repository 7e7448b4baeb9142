// Which packets between siblings are reported, with real packets (design 4), and what happens to packets for a
// machine that is not running.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  DNS_PORT,
  type Lab,
  type NetworkProcess,
  openLab,
  PUBLIC,
} from '../../../../test/support/network-lab/lab.ts'
import type { Attachment, KnownMachine } from './types.ts'

const PORT = 7000
const groups = { a1: 1, a2: 1, a3: 1, b1: 2, b2: 2 }
type Name = keyof typeof groups
/** Packets are reported within 250 ms, and within 1 s under load; a busy host may need longer. */
const TOLD_MS = 5000
/** Long enough for several polls of the counters. */
const NOT_TOLD_MS = 1000

let lab: Lab
let network: NetworkProcess
const machines = {} as Record<Name, Attachment>
const told = new Set<string>()

/** Records `a1>a2` for each pair that is reported from now on. */
function listen(): void {
  told.clear()
  const nameOf = (address: string) =>
    Object.entries(machines).find(([, machine]) => machine.address === address)?.[0] ?? address
  network.watchTraffic((pairs) => {
    for (const { from, to } of pairs) told.add(`${nameOf(from)}>${nameOf(to)}`)
  })
}

/** Returns the pairs reported for packets sent by `send`. Waits first, so that earlier packets are not included. */
async function toldOf(send: () => Promise<unknown>): Promise<Set<string>> {
  await delay(NOT_TOLD_MS)
  told.clear()
  await send()
  await delay(NOT_TOLD_MS)
  return new Set(told)
}

/** Returns what the server sends, or the code of the connection error. */
async function connect(from: Name, address: string, port = PORT): Promise<string> {
  const script = `
    const socket = require('net').connect(${port}, '${address}')
    socket.on('data', (data) => end(String(data))).on('error', ({ code }) => end(code))
    const end = (text) => { process.stdout.write(text); process.exit(0) }
    setTimeout(end, 8000, 'nothing')`
  return await lab.inside(machines[from].namespacePath, process.execPath, '-e', script)
}

/** Opens a connection between two machines with keep-alive once a second; the peer echoes what is sent. */
async function hold(from: Name, to: Name) {
  const start = async (name: Name, script: string) => {
    const args = [`--net=${machines[name].namespacePath}`, process.execPath, '-e', script]
    const child = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    return child
  }
  const listen = `.listen(7100, () => process.stdout.write('ready'))`
  await start(to, `require('net').createServer((peer) => peer.pipe(peer))${listen}`)
  const client = await start(
    from,
    `const socket = require('net').connect(7100, '${machines[to].address}', () => process.stdout.write('ready'))
    socket.setKeepAlive(true, 1000).on('error', ({ code }) => process.stdout.write(code))
    process.stdin.pipe(socket).pipe(process.stdout)`,
  )
  return {
    say: async (text: string) => {
      client.stdin.write(text)
      const [answer] = await once(client.stdout, 'data', { signal: AbortSignal.timeout(5000) })
      return String(answer)
    },
    end: async () => {
      client.stdin.end()
      await once(client, 'exit')
    },
  }
}

/** Counts all packets that machines send, in a separate table. */
async function countAll(): Promise<() => Promise<number>> {
  const table = `table ip witness {
    counter sent { }
    chain sending {
      type filter hook prerouting priority 0; policy accept;
      iifname "b${lab.instance.id}-*" counter name sent
    }
  }`
  await lab.inside(lab.host, 'nft', table)
  onTestFinished(async () => void (await lab.inside(lab.host, 'nft', 'delete table ip witness')))
  return async () => {
    const listing = await lab.inside(lab.host, 'nft', 'list counter ip witness sent')
    return Number(/packets (\d+)/.exec(listing)?.[1])
  }
}

const known = (): KnownMachine[] =>
  Object.entries(groups).map(([name, group]) => ({
    machineId: name,
    group,
    address: machines[name as Name].address,
    running: true,
    egress: null,
  }))

beforeAll(async () => {
  lab = await openLab()
  network = await lab.openNetwork()
  await network.recover([])
  for (const [machineId, group] of Object.entries(groups)) {
    const machine = await network.attach({ machineId, group, address: null })
    machines[machineId as Name] = machine
    await lab.serve(machine.namespacePath, `0.0.0.0:${PORT}`)
  }
  await lab.serve(lab.outside, `${PUBLIC}:${PORT}`)
  await lab.serve(lab.host, `${lab.gateway}:${DNS_PORT}`)
  listen()
})
afterAll(() => lab?.close())

describe('traffic reports', () => {
  const ways = {
    TCP: () => lab.reach(machines.a1.namespacePath, `tcp://${machines.a2.address}:${PORT}`),
    UDP: () => lab.reach(machines.a1.namespacePath, `udp://${machines.a2.address}:${PORT}`),
    ICMP: () => lab.ping(machines.a1.namespacePath, machines.a2.address),
  }
  test.each(Object.entries(ways))(
    'cover %s in both directions and name no other machine',
    async (_way, send) => {
      expect(await toldOf(send)).toEqual(new Set(['a1>a2', 'a2>a1']))
    },
  )

  test('end once no more packets are sent', async () => {
    await ways.UDP()
    expect(await toldOf(async () => {})).toEqual(new Set())
  })

  test('ignore TCP segments without payload, such as keep-alives and FIN', async () => {
    const held = await hold('a1', 'a2')
    const countSent = await countAll()
    expect(await toldOf(() => delay(2000))).toEqual(new Set())
    expect(await countSent()).toBeGreaterThan(2)

    expect(await toldOf(() => held.say('x'))).toEqual(new Set(['a1>a2', 'a2>a1']))
    expect(await toldOf(() => held.end())).toEqual(new Set())
  })

  test('still work with a thousand other pairs in the set', async () => {
    const { table, set } = tableOf()
    const pairs = Array.from(
      { length: 1000 },
      (_, n) => `10.250.${n >> 8}.${n & 255} . 10.250.9.9 counter packets 1 bytes 1`,
    )
    const elements = `add element ip ${table} ${set} { ${pairs.join(', ')} }`
    await lab.inside(lab.host, 'nft', elements)
    told.clear()
    await ways.UDP()
    await expect.poll(() => told, { timeout: TOLD_MS }).toContain('a1>a2')
    await lab.inside(lab.host, 'nft', `flush set ip ${table} ${set}`)
  })

  test('exclude traffic between groups, from outside, from the host, to the resolver and to the internet', async () => {
    const sent = await toldOf(async () => {
      await lab.reach(
        machines.a1.namespacePath,
        `tcp://${machines.b1.address}:${PORT}`,
        `udp://${machines.b1.address}:${PORT}`,
        `udp://${lab.gateway}:53`,
        `tcp://${PUBLIC}:${PORT}`,
      )
      await lab.reach(lab.outside, `tcp://${machines.b1.address}:${PORT}`)
      await lab.reach(lab.host, `tcp://${machines.b1.address}:${PORT}`)
      await lab.ping(machines.b2.namespacePath, machines.a1.address)
    })
    expect(sent).toEqual(new Set())
  })

  test('do not block packets when the set of pairs is full', async () => {
    const { table, set } = tableOf()
    // One element below the limit. Elements left by the previous test only fill the set earlier.
    const script = `
      let text = 'add element ip ${table} ${set} { '
      for (let n = 0; n < 65535; n++) text += (n ? ',' : '') + '10.250.' + (n >> 8) + '.' + (n & 255) + ' . 10.250.9.9'
      const { status, stderr } = require('child_process').spawnSync('nft', ['-f', '-'], { input: text + '}\\n' })
      if (status !== 0) throw new Error(String(stderr))`
    await lab.inside(lab.host, 'nft', `flush set ip ${table} ${set}`)
    await lab.inside(lab.host, process.execPath, '-e', script)
    expect(await ways.TCP()).toEqual([machines.a1.address])
    await lab.inside(lab.host, 'nft', `flush set ip ${table} ${set}`)
  })
})

describe('a member of a group that is not running', () => {
  test('is reported when a sibling connects, and the connection succeeds once it runs', async () => {
    const { address } = machines.a3
    await network.detach('a3')
    await delay(NOT_TOLD_MS)
    told.clear()
    const connected = connect('a1', address)
    await expect.poll(() => told, { timeout: TOLD_MS, interval: 20 }).toContain('a1>a3')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address })
    await lab.serve(machines.a3.namespacePath, `0.0.0.0:${PORT}`)
    expect(await connected).toBe(machines.a1.address)
  })

  test('accepts a pending connection once it listens, even after several attempts', async () => {
    const { address } = machines.a3
    await network.detach('a3')
    const connected = connect('a1', address)
    await expect.poll(() => told, { timeout: TOLD_MS }).toContain('a1>a3')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address })
    // The second SYN reaches a machine that is running but not yet listening.
    await delay(1500)
    await lab.serve(machines.a3.namespacePath, `0.0.0.0:${PORT}`)
    expect(await connected).toBe(machines.a1.address)

    const { table } = tableOf()
    await lab.inside(lab.host, 'nft', `flush set inet ${table} starting`)
    expect(await connect('a1', address, PORT + 1)).toBe('ECONNREFUSED')
  })

  test('gets the full start-up period again on every start', async () => {
    const { table } = tableOf()
    const startingForS = async () => {
      const listing = await lab.inside(lab.host, 'nft', `list set inet ${table} starting`)
      const { address } = machines.a3
      return Number(new RegExp(`${address.replaceAll('.', '\\.')} expires (\\d+)s`).exec(listing)?.[1])
    }
    const again = async () => {
      await network.detach('a3')
      machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
    }
    await again()
    await delay(3000)
    const before = await startingForS()
    await again()
    expect(await startingForS()).toBeGreaterThan(before)
  })

  test('resets connections from its previous run, also while it starts', async () => {
    const held = await hold('a1', 'a3')
    await network.detach('a3')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
    expect(await held.say('x')).toBe('ECONNRESET')
  })

  test('is also reported for UDP packets', async () => {
    await network.detach('a3')
    const sent = await toldOf(() =>
      lab.reach(machines.a2.namespacePath, `udp://${machines.a3.address}:${PORT}`),
    )
    expect(sent).toEqual(new Set(['a2>a3']))
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
  })

  test('differs from a free address and one of another group, both of which are unreachable at once', async () => {
    const free = machines.a1.address.replace(/\d+$/, '250')
    expect(await connect('a1', free)).toBe('EHOSTUNREACH')
    expect(await connect('a1', machines.b1.address)).toBe('EHOSTUNREACH')
    await network.release('a3')
    expect(await connect('a1', machines.a3.address)).toBe('EHOSTUNREACH')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
  })
})

describe('traffic counters', () => {
  test('are restored after another program removes them', async () => {
    const { table } = tableOf()
    for (const disturbance of [
      'flush ruleset',
      `delete table ip ${table}`,
      `flush chain ip ${table} packets`,
    ]) {
      await lab.inside(lab.host, 'nft', disturbance)
      const isBack = async () => {
        await lab.reach(machines.a1.namespacePath, `udp://${machines.a2.address}:${PORT}`)
        return told.delete('a1>a2')
      }
      // Earlier counts are reported first.
      await delay(NOT_TOLD_MS)
      told.clear()
      await expect.poll(isBack, { timeout: 8000 }).toBe(true)
    }
  })

  test('continue without the engine, and the next engine reports packets sent in between', async () => {
    await network.kill()
    // Sent only once: the kernel of a frozen machine would have acknowledged it.
    await lab.reach(machines.a2.namespacePath, `udp://${machines.a3.address}:${PORT}`)
    network = await lab.openNetwork()
    expect(await network.recover(known())).toMatchObject({ missing: [] })
    listen()
    await expect.poll(() => told, { timeout: TOLD_MS }).toContain('a2>a3')
  })

  test('are recreated when a set of a different type has their name', async () => {
    const { table, set } = tableOf()
    await network.kill()
    await lab.inside(lab.host, 'nft', `delete table ip ${table}`)
    await lab.inside(lab.host, 'nft', `add table ip ${table}`)
    await lab.inside(lab.host, 'nft', `add set ip ${table} ${set} { type ipv4_addr; }`)
    network = await lab.openNetwork()
    await network.recover(known())
    listen()
    await lab.reach(machines.a1.namespacePath, `udp://${machines.a2.address}:${PORT}`)
    await expect.poll(() => told, { timeout: TOLD_MS }).toContain('a1>a2')
  })
})

function tableOf(): { table: string; set: string } {
  return { table: `berth_${lab.instance.id}`, set: 'sent' }
}
