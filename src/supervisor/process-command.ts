// The command of each process and its user. The engine needs root; every other process runs confined, and sees the
// program through its run directory, since its user may have no access to the project's directory.

import { chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SAFE_PATH } from '../lib/process.ts'
import {
  callersDirOf,
  mailDirOf,
  type ProcessInput,
  type ProcessName,
  processNames,
  serverDirOf,
} from '../processes/channel.ts'
import { mayMount } from '../lib/may-mount.ts'
import { type Account, type AccountName, getAccount } from '../lib/system-users.ts'
import { type Sandbox, sandboxed } from './sandbox.ts'

const users = {
  engine: null,
  migrate: 'berth',
  server: 'berth',
  gateway: 'berth-gateway',
  egress: 'berth-egress',
} as const satisfies Record<ProcessName, AccountName | null>

/**
 * A visit takes the gateway a fraction of a millisecond, and would wait many times that behind commands, starts and reads
 * of other teams. Where the host allows no such priority, nice(1) starts the process without.
 */
const GATEWAY_NICENESS = -5

const COMPILED = 'compiled'

/** A small nursery: by default it grows to 48 MB per process, without making calls faster. */
const nodeFlags = ['--max-semi-space-size=4']

/**
 * Each piece of a stream is memory outside of V8's heap, and by default V8 marks its whole heap after each 64 MB of them. With
 * these it does so only once heap and pieces together are as large as a heap may be; the nursery's collections free the pieces
 * before that (decisions/gateway.md).
 */
export const streamFlags = [
  ...nodeFlags,
  '--external-memory-accounted-in-global-limit',
  '--initial-old-space-size=128',
]

/** The processes that copy streams. */
const copiesStreams = (name: ProcessName) => name === 'gateway' || name === 'egress'
const project = fileURLToPath(new URL('../..', import.meta.url))

/** The persistent state of a process is below the data directory, in a directory that only its user can enter. */
export const keptStateOf = (dataDir: string, name: ProcessName) => join(dataDir, 'roles', name)

const mailFolderOf = (dataDir: string) => join(dataDir, 'mail')

/** The cache of a process's compiled code. */
export const compiledDirOf = (name: ProcessName, dataDir: string) =>
  join(keptStateOf(dataDir, name), COMPILED)

/** The paths at which confined processes see node, the project and their state. */
const seenIn = (runDir: string) => ({
  node: join(runDir, 'node'),
  program: join(runDir, 'program'),
  state: join(runDir, 'state'),
})

/** The same where they have no mounts of their own. */
const hereOf = (name: ProcessName, dataDir: string) => ({
  node: process.execPath,
  program: project,
  state: keptStateOf(dataDir, name),
})

/** The state directory, by the path that the process itself sees. */
export function stateDirOf(name: ProcessName, dataDir: string, runDir: string): string {
  return users[name] === null || !mayMount() ? keptStateOf(dataDir, name) : seenIn(runDir).state
}

/** Creates the directories and mount points of the processes. */
export async function prepareProcessDirectories(dataDir: string, runDir: string): Promise<void> {
  const seen = seenIn(runDir)
  for (const path of [seen.program, seen.state]) await mkdir(path, { recursive: true })
  await writeFile(seen.node, '')
  // The users of all processes must be able to pass through both directories.
  await chmod(dirname(runDir), 0o755)
  await chmod(runDir, 0o711)
  const [server, gateway] = await Promise.all([getAccount('berth'), getAccount('berth-gateway')])
  await prepareSharedDirectory(serverDirOf(runDir), server, gateway)
  await prepareSharedDirectory(callersDirOf(runDir), gateway, server)
  await prepareMailDirectory(mailFolderOf(dataDir), mailDirOf(runDir))

  for (const name of processNames) {
    const path = keptStateOf(dataDir, name)
    await mkdir(path, { recursive: true })
    await chmod(path, 0o700)
    const user = users[name]
    if (user === null) continue
    const { uid, gid } = await getAccount(user)
    await chown(path, uid, gid)
  }
}

/** Files that its owner creates in it belong to the other's group, although the owner is not a member. */
async function prepareSharedDirectory(path: string, owner: Account, other: Account): Promise<void> {
  await mkdir(path, { recursive: true })
  await chown(path, owner.uid, other.gid)
  await chmod(path, 0o2710)
}

/** Where several gateways of a host find each other. One gateway needs none. */
export async function prepareGatewayDirectory(path: string): Promise<void> {
  const { uid, gid } = await getAccount('berth-gateway')
  await mkdir(path, { recursive: true })
  await chmod(path, 0o700)
  await chown(path, uid, gid)
}

/** Mails contain tokens: only the server and root may read them. */
async function prepareMailDirectory(path: string, seen: string): Promise<void> {
  const { uid, gid } = await getAccount('berth')
  if (mayMount()) await mkdir(seen, { recursive: true })
  else await symlink(path, seen).catch(ignoreIfThere)
  await mkdir(path, { recursive: true })
  await chown(path, uid, gid)
  await chmod(path, 0o700)
}

/** A run directory may be that of an earlier start. */
function ignoreIfThere(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

export function processEnvironment(name: ProcessName, { stateDir }: ProcessInput): Record<string, string> {
  return {
    PATH: SAFE_PATH,
    // Compiled code is cached between starts: the next start is faster, and uses 20 MB less without the compiler.
    NODE_COMPILE_CACHE: join(stateDir, COMPILED),
    // Found by the relative path to each file: a data directory that was moved or copied keeps its cache.
    NODE_COMPILE_CACHE_PORTABLE: '1',
    // Node's few threads need no malloc arenas of their own, which would make every process 5 MB larger.
    MALLOC_ARENA_MAX: '1',
    ...(copiesStreams(name) && keptForStreams),
  }
}

/**
 * Each read of a stream takes 64 kB and frees them again. Without these, malloc gives them back to the kernel at once,
 * and the next read must fault its pages in again (decisions/gateway.md).
 */
export const keptForStreams = {
  MALLOC_TRIM_THRESHOLD_: `${64 * 1024 * 1024}`,
  MALLOC_MMAP_THRESHOLD_: `${32 * 1024 * 1024}`,
  MALLOC_TOP_PAD_: `${1024 * 1024}`,
}

/** Returns the command and arguments that run a process. */
export function processCommand(name: ProcessName, input: ProcessInput): [string, string[]] {
  const user = users[name]
  const flags = copiesStreams(name) ? streamFlags : nodeFlags
  const argv = (node: string, directory: string) => [node, ...flags, join(directory, 'src/main.ts'), name]
  if (user === null) return ['setpriv', ['--pdeathsig=KILL', '--', ...argv(process.execPath, project)]]
  const seen = mayMount() ? seenIn(input.runDir) : hereOf(name, input.config.dataDir)
  const [command, args] = sandboxed(confinementOf(name, user, input), argv(seen.node, seen.program))
  return name === 'gateway' ? ['nice', ['-n', `${GATEWAY_NICENESS}`, command, ...args]] : [command, args]
}

function confinementOf(name: ProcessName, user: AccountName, { config, runDir }: ProcessInput): Sandbox {
  const seen = seenIn(runDir)
  const { apiAddress, hostsAddress, gatewayHttp, gatewayTls, gatewayMysql, gatewayHandover } = config
  const listened = [
    apiAddress,
    gatewayHttp,
    gatewayTls,
    gatewayMysql,
    ...(hostsAddress ? [hostsAddress] : []),
    ...(gatewayHandover ? [gatewayHandover] : []),
  ]
  // Of what this machine does not listen on, 0 stays 0 (doctor/ports.ts).
  const ports = listened.map(({ port }) => port).filter((port) => port > 0)
  return {
    user,
    deathSignal: 'SIGKILL',
    lowPorts: name !== 'egress' && ports.some((port) => port < 1024),
    binds: [
      { mode: 'ro', from: process.execPath, to: seen.node },
      { mode: 'ro', from: project, to: seen.program },
      { mode: 'rw', from: keptStateOf(config.dataDir, name), to: seen.state },
      ...(name === 'server'
        ? [{ mode: 'rw' as const, from: mailFolderOf(config.dataDir), to: mailDirOf(runDir) }]
        : []),
    ],
  }
}
