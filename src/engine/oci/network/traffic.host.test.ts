// Whose packets are told, with real packets (design 4); and what becomes of those to who does not run.

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
import type { Attachment, KnownMachine } from './network.ts'

const PORT = 7000
const groups = { a1: 1, a2: 1, a3: 1, b1: 2, b2: 2 }
type Name = keyof typeof groups
/** Packets are told within a quarter of a second, and within one where there are many; a busy host may need more. */
const TOLD_MS = 5000
/** Long enough for several readings. */
const NOT_TOLD_MS = 1000

let lab: Lab
let network: NetworkProcess
const machines = {} as Record<Name, Attachment>
const told = new Set<string>()

/** From now on, `a1>a2` for each pair that is told. */
function listen(): void {
  told.clear()
  const nameOf = (address: string) =>
    Object.entries(machines).find(([, machine]) => machine.address === address)?.[0] ?? address
  network.watchTraffic((pairs) => {
    for (const { from, to } of pairs) told.add(`${nameOf(from)}>${nameOf(to)}`)
  })
}

/** What is told of packets that are sent now: those of before are told first. */
async function toldOf(send: () => Promise<unknown>): Promise<Set<string>> {
  await delay(NOT_TOLD_MS)
  told.clear()
  await send()
  await delay(NOT_TOLD_MS)
  return new Set(told)
}

/** What a server says, or the code of the error that connecting ends with. */
async function connect(from: Name, address: string, port = PORT): Promise<string> {
  const script = `
    const socket = require('net').connect(${port}, '${address}')
    socket.on('data', (data) => end(String(data))).on('error', ({ code }) => end(code))
    const end = (text) => { process.stdout.write(text); process.exit(0) }
    setTimeout(end, 8000, 'nothing')`
  return await lab.inside(machines[from].namespacePath, process.execPath, '-e', script)
}

/** A connection between two machines, kept alive once a second. What is said is said back, or why it cannot be. */
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

/** Counts all that machines send, beside our own table. */
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

describe('packets are told', () => {
  const ways = {
    TCP: () => lab.reach(machines.a1.namespacePath, `tcp://${machines.a2.address}:${PORT}`),
    UDP: () => lab.reach(machines.a1.namespacePath, `udp://${machines.a2.address}:${PORT}`),
    ICMP: () => lab.ping(machines.a1.namespacePath, machines.a2.address),
  }
  test.each(Object.entries(ways))('of %s, both ways, and of nobody else', async (_way, send) => {
    expect(await toldOf(send)).toEqual(new Set(['a1>a2', 'a2>a1']))
  })

  test('once, and no more when nothing is sent any more', async () => {
    await ways.UDP()
    expect(await toldOf(async () => {})).toEqual(new Set())
  })

  test('not of segments that carry nothing: a connection that is only kept alive tells nobody', async () => {
    const held = await hold('a1', 'a2')
    const countSent = await countAll()
    expect(await toldOf(() => delay(2000))).toEqual(new Set())
    expect(await countSent()).toBeGreaterThan(2)

    expect(await toldOf(() => held.say('x'))).toEqual(new Set(['a1>a2', 'a2>a1']))
    expect(await toldOf(() => held.end())).toEqual(new Set())
  })

  test('when a thousand other pairs are remembered', async () => {
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

  test('not between groups, from outside, from the host, or to the resolver and the internet', async () => {
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

  test('pass also when no more pairs can be remembered', async () => {
    const { table, set } = tableOf()
    // One short of full: those of the test before may be there still, and then it is full all the sooner.
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

describe('a member that does not run', () => {
  test('is told of, answers nothing, and takes the connection once it runs', async () => {
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

  test('takes connections once it listens, however often they were tried before', async () => {
    const { address } = machines.a3
    await network.detach('a3')
    const connected = connect('a1', address)
    await expect.poll(() => told, { timeout: TOLD_MS }).toContain('a1>a3')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address })
    // The second try meets a machine that is there and does not listen yet.
    await delay(1500)
    await lab.serve(machines.a3.namespacePath, `0.0.0.0:${PORT}`)
    expect(await connected).toBe(machines.a1.address)

    const { table } = tableOf()
    await lab.inside(lab.host, 'nft', `flush set inet ${table} starting`)
    expect(await connect('a1', address, PORT + 1)).toBe('ECONNREFUSED')
  })

  test('may start for as long as ever, however often it has started before', async () => {
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

  test('ends connections from before at once, also while it starts', async () => {
    const held = await hold('a1', 'a3')
    await network.detach('a3')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
    expect(await held.say('x')).toBe('ECONNRESET')
  })

  test('is told of by packets that ask for no answer, too', async () => {
    await network.detach('a3')
    const sent = await toldOf(() =>
      lab.reach(machines.a2.namespacePath, `udp://${machines.a3.address}:${PORT}`),
    )
    expect(sent).toEqual(new Set(['a2>a3']))
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
  })

  test('is unlike an address that is nobody’s, and one of another group: those are refused at once', async () => {
    const free = machines.a1.address.replace(/\d+$/, '250')
    expect(await connect('a1', free)).toBe('EHOSTUNREACH')
    expect(await connect('a1', machines.b1.address)).toBe('EHOSTUNREACH')
    await network.release('a3')
    expect(await connect('a1', machines.a3.address)).toBe('EHOSTUNREACH')
    machines.a3 = await network.attach({ machineId: 'a3', group: 1, address: machines.a3.address })
  })
})

describe('the counting', () => {
  test('is put back when it was disturbed', async () => {
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
      // What was counted before is told before.
      await delay(NOT_TOLD_MS)
      told.clear()
      await expect.poll(isBack, { timeout: 8000 }).toBe(true)
    }
  })

  test('goes on without the engine: the next one tells what was sent meanwhile', async () => {
    await network.kill()
    // The kernel of a frozen machine would have acknowledged it: it is not sent twice.
    await lab.reach(machines.a2.namespacePath, `udp://${machines.a3.address}:${PORT}`)
    network = await lab.openNetwork()
    expect(await network.recover(known())).toMatchObject({ missing: [] })
    listen()
    await expect.poll(() => told, { timeout: TOLD_MS }).toContain('a2>a3')
  })

  test('goes on when another set is in its way', async () => {
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
