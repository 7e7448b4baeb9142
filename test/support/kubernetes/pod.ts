// Stand-ins for a node and the pod of its host, where there is no kubelet: the node has a network and mounts of its own, and the pod
// is the image of `npm run image`, run by runc with what the chart gives it: processes and network of the node, mounts of its own,
// and the node's directories, in which what the pod mounts is still there for the next one.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { HOUR, MINUTE } from '../../../src/lib/clock.ts'
import { runOrThrow } from '../../../src/lib/process.ts'
import { readIfThere } from '../../../src/lib/read-if-there.ts'
import { baseEnvironment, IMAGES_DIR, type Settings } from '../berth.ts'
import { project } from '../clients.ts'

const READY_WITHIN_MS = 5 * MINUTE
const PROGRAMS = '/opt/berth'

/** As a runtime keeps it on a node: each layer in a directory. */
export type UnpackedImage = { layers: string[]; remove: () => Promise<void> }

/** Returns the directory of the layout. It is built of this checkout, unless one is given that was. */
export async function buildImage(directory: string): Promise<string> {
  const given = process.env.BERTH_TEST_IMAGE
  if (given !== undefined) return given
  const args = [join(project, 'scripts/image.ts'), '--out', directory]
  await promisify(execFile)(process.execPath, args, { timeout: HOUR, maxBuffer: 64 * 1024 * 1024 })
  return join(directory, 'oci')
}

/** `version`: what Berth in it says of itself. */
export async function unpackImage(
  layout: string,
  directory: string,
  version: string,
): Promise<UnpackedImage> {
  const blob = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'))
  const read = async <T>(file: string) => JSON.parse(await readFile(file, 'utf8')) as T
  const { manifests } = await read<{ manifests: { digest: string }[] }>(join(layout, 'index.json'))
  const manifest = await read<{ layers: { digest: string }[] }>(blob(manifests[0]?.digest ?? ''))
  const layers = []
  for (const [index, { digest }] of manifest.layers.entries()) {
    const layer = join(directory, String(index))
    await mkdir(layer, { recursive: true })
    const args = [
      '--extract',
      '--file',
      blob(digest),
      '--directory',
      layer,
      '--numeric-owner',
      '--preserve-permissions',
    ]
    await runOrThrow('tar', args, { timeoutMs: 10 * MINUTE })
    layers.push(layer)
  }
  const file = join(layers.at(-1) ?? '', PROGRAMS, 'package.json')
  await writeFile(file, JSON.stringify({ ...(await read<object>(file)), version }))
  return { layers, remove: async () => await rm(directory, { recursive: true }) }
}

export type KubeNode = Awaited<ReturnType<typeof startNode>>

/** `network`: of the node, as a path. It ends with the tests, however they end; what runs in it does not. */
export async function startNode(dataDir: string, network: string) {
  const script = [
    `mount --bind ${dataDir} ${dataDir}`,
    'mkdir -p /run/berth /run/netns',
    ...['/run/berth', '/run/netns'].map((directory) => `mount -t tmpfs node ${directory}`),
    ...[dataDir, '/run/berth', '/run/netns'].map((directory) => `mount --make-shared ${directory}`),
    'echo ready',
    'exec sleep infinity',
  ].join(' && ')
  const holder = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', 'unshare', '--mount', '--propagation', 'private', 'sh', '-c', script],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  await once(holder.stdout, 'data')
  const enter = ['nsenter', `--net=${network}`, `--mount=/proc/${holder.pid}/ns/mnt`] as const
  const inside = async (...command: string[]) => {
    const [program, ...args] = [...enter, ...command]
    return await runOrThrow(program, args, { timeoutMs: MINUTE })
  }
  const directory = await mkdtemp(join(tmpdir(), 'berth-node-'))
  return {
    dataDir,
    directory,
    enter,
    inside,
    close: async () => {
      holder.kill('SIGKILL')
      await once(holder, 'exit')
      await rm(directory, { recursive: true })
    },
  }
}

export class Pod {
  /** What it has printed. */
  output = ''
  readonly #node: KubeNode
  readonly #name: string
  readonly #child: ChildProcess

  private constructor(node: KubeNode, name: string) {
    this.#node = node
    this.#name = name
    const [program, ...args] = [...node.enter, ...this.#runc, 'run', '--bundle', this.#bundle, name]
    this.#child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.output += chunk.toString()))
  }

  /** Resolves once the host is ready. `secrets`: its projected volume. */
  static async start(
    node: KubeNode,
    {
      name,
      image,
      secrets,
      settings,
    }: { name: string; image: UnpackedImage; secrets: string; settings: Settings },
  ): Promise<Pod> {
    const bundle = join(node.directory, name)
    const at = (directory: string) => join(bundle, directory)
    for (const each of ['rootfs', 'upper', 'work']) await mkdir(at(each), { recursive: true })
    const layers = `lowerdir=${image.layers.toReversed().join(':')},upperdir=${at('upper')},workdir=${at('work')}`
    await node.inside('mount', '-t', 'overlay', 'overlay', '-o', layers, at('rootfs'))
    await writeFile(at('config.json'), JSON.stringify(describePod(node, secrets, settings)))
    const pod = new Pod(node, name)
    const untilMs = Date.now() + READY_WITHIN_MS
    while (!/Berth is ready[.,]/.test(pod.output)) {
      if (pod.hasEnded || Date.now() > untilMs) {
        await pod.kill()
        throw new Error(`the pod did not get ready:\n${pod.output}`)
      }
      await delay(100)
    }
    return pod
  }

  get #bundle(): string {
    return join(this.#node.directory, this.#name)
  }

  get #runc(): string[] {
    return ['runc', '--root', join(this.#node.directory, 'runc')]
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** All of its processes at once, and its root goes. */
  async kill(): Promise<void> {
    await leaveGroup(basename(this.#node.directory))
    await this.#node.inside(...this.#runc, 'delete', '--force', this.#name)
    if (!this.hasEnded) await once(this.#child, 'exit')
    await this.#removeRoot()
  }

  /** As the kubelet does with a pod that is to end: returns its exit code. */
  async stop(): Promise<number | null> {
    await leaveGroup(basename(this.#node.directory))
    await this.#node.inside(...this.#runc, 'kill', this.#name, 'TERM')
    if (!this.hasEnded) await once(this.#child, 'exit')
    await this.#removeRoot()
    return this.#child.exitCode
  }

  async #removeRoot(): Promise<void> {
    await this.#node.inside('umount', join(this.#bundle, 'rootfs'))
    await rm(this.#bundle, { recursive: true })
  }
}

const CGROUPS = '/sys/fs/cgroup'

/**
 * With control groups of version 2, as nodes of Kubernetes have them, a process that Berth has moved into a group of its own is in
 * that alone. With version 1 it is still in the pod's for other controllers, by which runc would find and kill it.
 */
async function leaveGroup(pod: string): Promise<void> {
  const pidsIn = async (tree: string) =>
    (await readIfThere(join(CGROUPS, tree, pod, 'cgroup.procs')))?.split('\n').filter(Boolean) ?? []
  const own = new Set(await pidsIn('cpu'))
  // One that has ended meanwhile needs nothing.
  for (const tree of await readdir(CGROUPS))
    for (const pid of await pidsIn(tree))
      if (!own.has(pid)) await writeFile(join(CGROUPS, tree, 'cgroup.procs'), pid).catch(() => {})
}

/** In the order of their bits. */
// biome-ignore format: a list
const names = [
  'CHOWN', 'DAC_OVERRIDE', 'DAC_READ_SEARCH', 'FOWNER', 'FSETID', 'KILL', 'SETGID', 'SETUID', 'SETPCAP', 'LINUX_IMMUTABLE',
  'NET_BIND_SERVICE', 'NET_BROADCAST', 'NET_ADMIN', 'NET_RAW', 'IPC_LOCK', 'IPC_OWNER', 'SYS_MODULE', 'SYS_RAWIO', 'SYS_CHROOT',
  'SYS_PTRACE', 'SYS_PACCT', 'SYS_ADMIN', 'SYS_BOOT', 'SYS_NICE', 'SYS_RESOURCE', 'SYS_TIME', 'SYS_TTY_CONFIG', 'MKNOD', 'LEASE',
  'AUDIT_WRITE', 'AUDIT_CONTROL', 'SETFCAP', 'MAC_OVERRIDE', 'MAC_ADMIN', 'SYSLOG', 'WAKE_ALARM', 'BLOCK_SUSPEND', 'AUDIT_READ',
  'PERFMON', 'BPF', 'CHECKPOINT_RESTORE',
]

/** All that this machine has for its containers. */
function allCapabilities(): string[] {
  const [, mask = '0'] = /^CapBnd:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return names.filter((_name, bit) => (BigInt(`0x${mask}`) >> BigInt(bit)) & 1n).map((name) => `CAP_${name}`)
}

/** What containerd gives a privileged container of the chart's DaemonSet. */
function describePod({ dataDir, directory }: KubeNode, secrets: string, settings: Settings): unknown {
  const bind = (from: string, to: string, ...options: string[]) => ({
    type: 'bind',
    source: from,
    destination: to,
    options: ['rbind', ...options],
  })
  const env = Object.entries(baseEnvironment(dataDir, { BERTH_ROLE: 'host', ...settings }))
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid: 0, gid: 0 },
      args: ['node', 'src/main.ts', 'all'],
      cwd: PROGRAMS,
      env: env.map(([name, value]) => `${name}=${value}`),
      capabilities: Object.fromEntries(
        ['bounding', 'effective', 'inheritable', 'permitted'].map((set) => [set, allCapabilities()]),
      ),
    },
    root: { path: 'rootfs' },
    mounts: [
      { type: 'proc', source: 'proc', destination: '/proc' },
      { type: 'sysfs', source: 'sysfs', destination: '/sys' },
      bind('/sys/fs/cgroup', '/sys/fs/cgroup', 'rprivate'),
      bind('/dev', '/dev', 'rprivate'),
      ...[dataDir, '/run/berth', '/run/netns'].map((directory) => bind(directory, directory, 'rshared')),
      // Of the tests: images of units are built once for all.
      bind(IMAGES_DIR, IMAGES_DIR, 'rprivate'),
      bind(secrets, '/var/run/secrets/berth', 'ro'),
      bind('/etc/resolv.conf', '/etc/resolv.conf', 'ro'),
      bind('/etc/hosts', '/etc/hosts', 'ro'),
    ],
    linux: {
      cgroupsPath: `/${basename(directory)}`,
      namespaces: [{ type: 'mount' }, { type: 'ipc' }],
      rootfsPropagation: 'rshared',
      resources: { devices: [{ allow: true, access: 'rwm' }] },
    },
  }
}
