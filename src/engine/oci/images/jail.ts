// The jails in which untrusted bytes are parsed: a process that fetches or unpacks an image sees no more of this host
// than it needs, and ends with us.
//
// Both jails have their own mount, pid, ipc, uts and network namespaces (loopback only), a root made of a read-only
// /usr and the listed paths, mounts with nodev and nosuid, no new privileges, and resource limits.
// - `fetch` runs as berth-images without capabilities. Its only way out is a unix socket (proxy.ts).
// - `unpack` stays uid 0, because the files of an image belong to many users, with six capabilities: to change owners
//   (CHOWN), to write where only their owner may (DAC_OVERRIDE), to set modes and times on them (FOWNER, FSETID), and
//   to make device nodes and file capabilities (MKNOD, SETFCAP): many ordinary images have some, umoci fails without,
//   and they have no effect on these mounts until they are stripped. It gets no /proc, where uid 0 may write kernel
//   settings even without capabilities.

import { fileURLToPath } from 'node:url'
import type { Account } from '../../../lib/system-users.ts'
import type { RunResult } from '../../../lib/process.ts'
import { run } from '../kernel/programs.ts'
import { type Charge, unchanged } from '../kernel/team-groups.ts'

export type Jail = {
  /** A TypeScript program under `jailed/`; the jails see no other file of Berth. */
  program: 'fetch' | 'unpack' | 'clean'
  args: string[]
  /** Path inside → path on the host. */
  readOnly: Record<string, string>
  writable: Record<string, string>
  /** Null: uid 0 with the capabilities above. */
  account: Account | null
  maxFileBytes: number
  /** CPU time of each process in it. */
  maxCpuS: number
}

export type JailRun = {
  timeoutMs: number
  maxOutputBytes: number
  /** Default: it runs at the service's own expense. */
  charge?: Charge
  signal: AbortSignal
}

const unpackCapabilities = ['chown', 'dac_override', 'fowner', 'fsetid', 'mknod', 'setfcap']
/** What setpriv needs to drop all others permanently, and to change the user; dropped afterwards. */
const dropCapabilities = ['setpcap', 'setuid', 'setgid']
const programs = fileURLToPath(new URL('./jailed', import.meta.url))
const MEMORY_BYTES = 2 * 1024 ** 3
const TMP_BYTES = 16 * 1024 ** 2

export async function runJailed(jail: Jail, { charge = unchanged, ...options }: JailRun): Promise<RunResult> {
  // A child only sees an abort that happens after its start.
  options.signal.throwIfAborted()
  const [command = '', ...args] = jailCommand(jail)
  return await run(...charge(command, args), options)
}

/** The argument vector that starts a jail. Pure. */
export function jailCommand(jail: Jail): string[] {
  // biome-ignore format: an option stays beside its value
  return [
    // Units and the service have priority.
    'nice', '-n', '10',
    'prlimit',
    '--core=0',
    `--cpu=${jail.maxCpuS}`,
    '--nofile=4096',
    `--data=${MEMORY_BYTES}`,
    `--fsize=${jail.maxFileBytes}`,
    '--',
    'bwrap',
    '--die-with-parent',
    '--new-session',
    '--clearenv',
    '--setenv', 'PATH', '/usr/bin:/usr/sbin',
    '--setenv', 'HOME', '/tmp',
    ...['ipc', 'pid', 'net', 'uts', 'cgroup-try'].map((namespace) => `--unshare-${namespace}`),
    '--cap-drop', 'ALL',
    ...[...dropCapabilities, ...keptCapabilities(jail)].flatMap((name) => [
      '--cap-add', `CAP_${name.toUpperCase()}`,
    ]),
    '--ro-bind', '/usr', '/usr',
    ...['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    '--dev', '/dev',
    '--perms', '1777', '--size', String(TMP_BYTES), '--tmpfs', '/tmp',
    // Directories that bwrap creates for mounts are readable by root only, and the fetcher is another user.
    '--dir', '/berth',
    '--dir', '/etc',
    '--ro-bind', process.execPath, '/berth/node',
    '--ro-bind', programs, '/berth/jailed',
    ...mounts('--ro-bind', jail.readOnly),
    ...mounts('--bind', jail.writable),
    '--',
    'setpriv', ...dropPrivileges(jail), '--',
    '/berth/node',
    // There is no package.json in it to declare modules.
    '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
    `/berth/jailed/${jail.program}.ts`,
    ...jail.args,
  ]
}

function keptCapabilities({ account }: Jail): string[] {
  return account ? [] : unpackCapabilities
}

function dropPrivileges(jail: Jail): string[] {
  const { account } = jail
  const kept = ['-all', ...keptCapabilities(jail).map((name) => `+${name}`)].join(',')
  return [
    ...(account ? [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'] : []),
    // The ambient set keeps them across the start of umoci, and the bounding set prevents any others.
    `--inh-caps=${kept}`,
    `--ambient-caps=${kept}`,
    `--bounding-set=${kept}`,
    '--no-new-privs',
  ]
}

function mounts(option: string, paths: Record<string, string>): string[] {
  return Object.entries(paths).flatMap(([inside, outside]) => [option, outside, inside])
}
