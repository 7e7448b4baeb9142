// A host and the world around it, out of network namespaces: nothing a test does here, not even a flush of
// all rules, touches the machine it runs on.
//
//   outside ── 192.0.2.0/24 ── host ── wires ── machines
//
// `outside` plays the internet (203.0.113.10), clouds' metadata services and private networks, and has a
// route to the machines' subnet by way of the host, as a neighbour could.

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run, runOrThrow } from '../../../src/lib/process.ts'
import { type Instance, namespacePath } from '../../../src/engine/oci/network/names.ts'
import type { MachineEgress } from '../../../src/engine/egress.ts'
import type { Attachment, KnownMachine, RecoveredNetwork } from '../../../src/engine/oci/network/types.ts'
import type { LinkSockets } from '../../../src/engine/oci/network/egress-link.ts'
import type { Pullers } from '../../../src/engine/oci/network/firewall-processes.ts'
import type { MachineSeen } from '../../../src/lib/egress/seen.ts'
import type { Pair } from '../../../src/engine/oci/network/traffic.ts'
import type { Call, Reply, Told } from './network-process.ts'

export const HOST = '192.0.2.2'
export const NEIGHBOUR = '192.0.2.1'
export const PUBLIC = '203.0.113.10'
export const FORBIDDEN = [
  '10.200.0.1',
  '100.100.100.200',
  '168.63.129.16',
  '169.254.169.254',
  '169.254.170.2',
  '172.16.5.5',
  '192.168.7.7',
]
export const DNS_PORT = 5353
export const EGRESS_PORTS = { dns: 5354, http: 5355, tls: 5356 }
/** The group of the egress process in a lab. */
export const EGRESS_GID = 54_322

/** As the engine's own, across a process that can be killed. */
export type NetworkProcess = {
  recover: (known: KnownMachine[]) => Promise<RecoveredNetwork>
  attach: (machine: { machineId: string; group: number; address: string | null }) => Promise<Attachment>
  detach: (machineId: string) => Promise<void>
  release: (machineId: string) => Promise<void>
  restrict: (machineId: string, egress: MachineEgress | null) => Promise<void>
  /** For as long as the process lives. */
  watchTraffic: (onSent: (pairs: Pair[]) => void) => void
  watchSeen: (onSeen: (lines: MachineSeen[]) => void) => void
  close: (options: { removeAll: boolean }) => Promise<void>
  /** SIGKILL: as a crash of the engine. */
  kill: () => Promise<void>
}

export type Lab = {
  instance: Instance
  /** The instance's first address, as text. */
  gateway: string
  /** Paths of the namespaces. */
  host: string
  outside: string
  openNetwork: (instance?: Instance, pullers?: Pullers) => Promise<NetworkProcess>
  /** Runs a program in a namespace; answers its standard output, throws when it fails. */
  inside: (namespace: string, command: string, ...args: string[]) => Promise<string>
  /** Answers TCP and UDP there until the lab closes. */
  serve: (namespace: string, ...addresses: string[]) => Promise<void>
  /** As `reach`, by a process of this group. */
  reachAs: (gid: number, namespace: string, ...targets: string[]) => Promise<(string | null)[]>
  /** What each target answers; null for those out of reach. */
  reach: (namespace: string, ...targets: string[]) => Promise<(string | null)[]>
  ping: (namespace: string, address: string) => Promise<boolean>
  /** Packets that arrived outside for a private address, and from one. */
  leaks: () => Promise<{ to: number; from: number }>
  /** Everything the host has: links, addresses, routes, rules, settings, namespaces. */
  inventory: () => Promise<string>
  /** Of the first instance: where it says what machines may reach. */
  sockets: LinkSockets
  close: () => Promise<void>
}

export function newInstance(): Instance {
  const [high = 0] = randomBytes(1)
  return { id: randomBytes(2).toString('hex'), subnet: `10.${high % 200}.0.0/16` }
}

export async function openLab(): Promise<Lab> {
  const instance = newInstance()
  const name = `lab-${instance.id}`
  const [host, outside] = [namespacePath(`${name}-host`), namespacePath(`${name}-out`)]
  const stateDir = await mkdtemp(join(tmpdir(), `${name}-`))
  const children = new Set<ChildProcess>()
  await build(name, instance.subnet)

  const inside = (namespace: string, command: string, ...args: string[]) =>
    runOrThrow('nsenter', [`--net=${namespace}`, command, ...args], { timeoutMs: 30_000 })
  const script = (file: string) => new URL(file, import.meta.url).pathname

  const kill = async (child: ChildProcess) => {
    children.delete(child)
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  return {
    instance,
    gateway: gatewayOf(instance),
    host,
    outside,
    inside,
    sockets: socketsOf(stateDir, instance),

    async openNetwork(of = instance, pullers = { gids: [], allowed: [] }) {
      const egress = { ports: EGRESS_PORTS, gid: EGRESS_GID, sockets: socketsOf(stateDir, of) }
      const options = { instance: of, pullers, egress, dnsPort: DNS_PORT, stateDir: join(stateDir, of.id) }
      const child = fork(script('./network-process.ts'), [JSON.stringify(options)], {
        execPath: 'nsenter',
        execArgv: [`--net=${host}`, process.execPath],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      children.add(child)
      await once(child, 'message')
      return remote(child, () => kill(child))
    },

    async serve(namespace, ...addresses) {
      const child = spawn(
        'nsenter',
        [`--net=${namespace}`, process.execPath, script('./probe.ts'), 'serve', ...addresses],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      children.add(child)
      await once(child.stdout, 'data')
    },

    async reach(namespace, ...targets) {
      const output = await inside(namespace, process.execPath, script('./probe.ts'), 'reach', ...targets)
      return JSON.parse(output) as (string | null)[]
    },

    async reachAs(gid, namespace, ...targets) {
      const as = ['--regid', String(gid), '--clear-groups', process.execPath, script('./probe.ts')]
      return JSON.parse(await inside(namespace, 'setpriv', ...as, 'reach', ...targets)) as (string | null)[]
    },

    async ping(namespace, address) {
      const args = [`--net=${namespace}`, 'busybox', 'ping', '-c', '1', '-W', '1', address]
      return (await run('nsenter', args, { timeoutMs: 5000 })).exitCode === 0
    },

    async leaks() {
      const listing = await inside(outside, 'nft', 'list', 'counters')
      const packets = (name: string) => Number(new RegExp(`${name} {\\s*packets (\\d+)`).exec(listing)?.[1])
      return { to: packets('sent_to'), from: packets('sent_from') }
    },

    async inventory() {
      const parts = await Promise.all([
        inside(host, 'ip', '-br', 'link').then((links) => links.replaceAll(/@if\d+/g, '')),
        inside(host, 'ip', '-br', 'address'),
        inside(host, 'ip', 'route', 'show', 'table', 'all'),
        inside(host, 'ip', 'rule'),
        inside(host, 'nft', 'list', 'ruleset'),
        inside(host, 'sysctl', 'net.ipv4.conf.up0.forwarding', 'net.ipv4.ip_forward'),
        run('ls', ['/run/netns'], { timeoutMs: 5000 }).then(({ stdout }) =>
          stdout
            .split('\n')
            .filter((each) => each.includes(instance.id))
            .join('\n'),
        ),
      ])
      return parts.join('\n---\n')
    },

    async close() {
      await Promise.all([...children].map(kill))
      // Twice: the last `ip` of a network that was killed may still be at work.
      for (const afterMs of [0, 200]) {
        await delay(afterMs)
        const namespaces = (await run('ls', ['/run/netns'], { timeoutMs: 5000 })).stdout
          .split('\n')
          .filter((each) => each.startsWith(`berth-${instance.id}-`) || each.startsWith(name))
        for (const each of namespaces) await run('ip', ['netns', 'del', each], { timeoutMs: 5000 })
      }
      await rm(stateDir, { recursive: true })
    },
  }
}

export function gatewayOf({ subnet }: Instance): string {
  return subnet.replace('.0.0/16', '.0.1')
}

function socketsOf(stateDir: string, { id }: Instance): LinkSockets {
  return {
    rules: { path: join(stateDir, `${id}.rules`), gid: 0 },
    names: { path: join(stateDir, `${id}.names`), gid: 0 },
  }
}

async function build(name: string, subnet: string): Promise<void> {
  await batch([
    `netns add ${name}-host`,
    `netns add ${name}-out`,
    `link add up0 netns ${name}-host type veth peer name down0 netns ${name}-out`,
  ])
  await batch(
    [
      'link set lo up',
      'link set up0 addrgenmode none',
      'link set up0 up',
      `addr add ${HOST}/24 dev up0`,
      `route add default via ${NEIGHBOUR}`,
    ],
    `${name}-host`,
  )
  await batch(
    [
      'link set lo up',
      'link set down0 addrgenmode none',
      'link set down0 up',
      `addr add ${NEIGHBOUR}/24 dev down0`,
      ...[PUBLIC, ...FORBIDDEN].map((address) => `addr add ${address}/32 dev lo`),
      `route add ${subnet} via ${HOST}`,
    ],
    `${name}-out`,
  )
  // A new namespace takes this over from the machine the lab runs on.
  const notForwarding = ['sysctl', '-q', '-w', 'net.ipv4.ip_forward=0']
  await runOrThrow('nsenter', [`--net=${namespacePath(`${name}-host`)}`, ...notForwarding], {
    timeoutMs: 5000,
  })
  const forbidden = [...FORBIDDEN, '10.0.0.0/8', '224.0.0.0/4']
  await runOrThrow('nsenter', [`--net=${namespacePath(`${name}-out`)}`, 'nft', '-f', '-'], {
    timeoutMs: 5000,
    stdin: `table inet witness {
      set forbidden { type ipv4_addr; flags interval; auto-merge; elements = { ${forbidden.join(', ')} } }
      counter sent_to { }
      counter sent_from { }
      chain arriving {
        type filter hook prerouting priority raw; policy accept;
        iifname "down0" ip daddr @forbidden counter name sent_to
        iifname "down0" ip saddr @forbidden counter name sent_from
      }
    }`,
  })
}

async function batch(commands: string[], namespace?: string): Promise<void> {
  const where = namespace === undefined ? [] : ['-n', namespace]
  await runOrThrow('ip', [...where, '-batch', '-'], { stdin: `${commands.join('\n')}\n`, timeoutMs: 10_000 })
}

function remote(child: ChildProcess, kill: () => Promise<void>): NetworkProcess {
  const waiting = new Map<number, (reply: Reply) => void>()
  let lastId = 0
  let onSent = (_pairs: Pair[]) => {}
  let onSeen = (_lines: MachineSeen[]) => {}
  child.on('message', (message: Reply | Told) => {
    if (message.id === null) {
      onSent(message.pairs)
      onSeen(message.seen)
    } else waiting.get(message.id)?.(message)
  })
  const call = <T>(method: Call['method'], argument: unknown): Promise<T> =>
    new Promise((resolve, reject) => {
      const id = ++lastId
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id)
        if (error === undefined) resolve(result as T)
        else reject(new Error(error))
      })
      child.send({ id, method, argument } satisfies Call)
    })
  return {
    recover: (known) => call('recover', known),
    attach: (machine) => call('attach', machine),
    detach: (machineId) => call('detach', machineId),
    release: (machineId) => call('release', machineId),
    restrict: (machineId, egress) => call('restrict', { machineId, egress }),
    watchTraffic: (listener) => {
      onSent = listener
      child.send({ id: 0, method: 'watchTraffic', argument: null } satisfies Call)
    },
    watchSeen: (listener) => {
      onSeen = listener
      child.send({ id: 0, method: 'watchSeen', argument: null } satisfies Call)
    },
    close: (options) => call('close', options),
    kill,
  }
}
