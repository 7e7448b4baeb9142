// The only file that knows how runc and runsc are called.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunResult } from '../../../lib/process.ts'
import type { IsolationClass } from '../../engine.ts'
import type { Criu } from '../checkpoint/criu.ts'
import type { Program } from '../exec/control.ts'
import { removeTree } from '../kernel/mounts.ts'
import { run } from '../kernel/programs.ts'
import type { RunPaths } from '../paths.ts'
import { releaseFirstProcess } from './exec-fifo.ts'

export type Runtime = {
  class: IsolationClass
  version: string
  binary: string
  /** The program that creates and starts containers: for runsc it may be a wrapper (`writeMaskedRunsc`). */
  launcher: string
  /** The directory of its container state. */
  root: string
  globalArgs: string[]
  /** runc passes our pipes on and exits; runsc stays until the command ends. */
  execDetaches: boolean
  /** What its machines write at once to a pipe of the host may be cut short: output goes through the relay (relay.c). */
  cutsWrites: boolean
  /** The timeout of a call: far longer than one takes on a busy host. */
  deadlineMs: number
  /**
   * How much of a machine's log conmon writes before it starts a new file: this limits a log while no engine rotates
   * it (decision 0068).
   */
  logFileBytes: number
  /** Set if a probe has shown that it can keep the memory of its machines. */
  criu: Criu | null
  /** gVisor: how its sandboxes are asked for commands. */
  commands: CommandWays
}

/**
 * `program`: what a sandbox must run to be asked directly, as a probe has shown (exec/control-probe.ts); null: none is.
 * `otherwise`: whether the runtime's own exec is used where that is not so.
 */
export type CommandWays = { program: Program | null; otherwise: boolean }

export type RuntimeOptions = {
  runc: string
  runsc: string
  deadlineMs: number
  logFileBytes: number
  /** Programs to try; the first that works is used. Default: those of criu.ts. */
  criu?: string[]
  /** How commands get into gVisor: `direct` and `runsc` leave no choice. Default: `auto`, as the probe decides. */
  gvisorCommands?: GvisorCommands
}

export const gvisorCommands = ['auto', 'direct', 'runsc'] as const
export type GvisorCommands = (typeof gvisorCommands)[number]

const byRuntime: CommandWays = { program: null, otherwise: true }

const ANSWER_TIMEOUT_MS = 10_000

/** Where Debian installs them. */
export const runtimeDefaults: RuntimeOptions = {
  runc: '/usr/sbin/runc',
  runsc: '/usr/bin/runsc',
  deadlineMs: 30_000,
  logFileBytes: 128 * 1024 * 1024,
}

export function runtimeOptions(config: {
  criu: string | null
  gvisorCommands: GvisorCommands
}): RuntimeOptions {
  const { criu, gvisorCommands } = config
  return { ...runtimeDefaults, gvisorCommands, ...(criu === null ? {} : { criu: [criu] }) }
}

/**
 * directfs off: the sandbox itself opens no host file. Exclusive file access: only the machine uses its disk and
 * volume while it runs. overlay2 off: the default would discard the disk at exit.
 */
const RUNSC_FLAGS = [
  '--platform=systrap',
  '--network=sandbox',
  '--net-raw=false',
  '--host-uds=none',
  '--host-fifo=none',
  '--directfs=false',
  '--overlay2=none',
  '--file-access=exclusive',
  '--file-access-mounts=exclusive',
  '--cpu-num-from-quota=true',
]

export function runcRuntime(
  root: string,
  version: string,
  { runc, deadlineMs, logFileBytes }: RuntimeOptions,
): Runtime {
  return {
    class: 'runc',
    version,
    binary: runc,
    launcher: runc,
    root,
    globalArgs: ['--root', root],
    execDetaches: true,
    cutsWrites: false,
    deadlineMs,
    logFileBytes,
    criu: null,
    commands: byRuntime,
  }
}

/** `launcher`: runsc itself, or the wrapper that masks the host from it. */
export function runscRuntime(
  root: string,
  version: string,
  options: RuntimeOptions,
  launcher = options.runsc,
): Runtime {
  return {
    class: 'gvisor',
    version,
    binary: options.runsc,
    launcher,
    root,
    globalArgs: ['--root', root, ...RUNSC_FLAGS],
    execDetaches: false,
    cutsWrites: true,
    deadlineMs: options.deadlineMs,
    logFileBytes: options.logFileBytes,
    criu: null,
    commands: byRuntime,
  }
}

/**
 * Since 6.17 net.core.rmem_default is a setting of each network namespace; runsc of 2024 and older takes it for the
 * host's namespace and refuses to start. With nothing below /proc/sys/net it starts.
 */
export async function writeMaskedRunsc(directory: string, runsc: string): Promise<string> {
  const path = join(directory, 'runsc-masked')
  // All of it by one static program, which starts in half of the time that the separate ones take.
  const script = `#!/bin/busybox sh
exec /bin/busybox unshare --mount --propagation slave /bin/busybox sh -c '/bin/busybox mount -t tmpfs -o ro none /proc/sys/net && exec "$0" "$@"' ${runsc} "$@"
`
  await writeFile(path, script, { mode: 0o700 })
  return path
}

/** Starts a created container. Repeating it succeeds. */
export async function startContainer(
  runtime: Runtime,
  { container, pid }: Pick<RunPaths, 'container' | 'pid'>,
  signal: AbortSignal,
): Promise<{ kind: 'started' } | { kind: 'failed'; reason: string }> {
  const limits = { timeoutMs: runtime.deadlineMs, signal }
  if (runtime.class === 'runc') {
    const waited = await releaseFirstProcess(join(runtime.root, container), pid, limits)
    if (waited === 'started') return { kind: 'started' }
    if (waited !== 'not-there') return { kind: 'failed', reason: `the container's process is ${waited}` }
  }
  const said = await run(runtime.launcher, [...runtime.globalArgs, 'start', container], limits)
  if (said.exitCode === 0 || /already running|in state running/.test(said.stderr)) return { kind: 'started' }
  return { kind: 'failed', reason: said.timedOut ? 'the runtime hung' : said.stderr }
}

/** Writes the memory of a frozen container to a directory. It stays frozen. */
export async function checkpointContainer(
  runtime: Runtime,
  container: string,
  directory: string,
  limits: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  if (!runtime.criu) throw new Error(`${runtime.class} cannot keep memory`)
  const place = ['--image-path', directory, '--work-path', directory]
  const args = [...runtime.globalArgs, 'checkpoint', '--leave-running', ...place, container]
  const said = await run(runtime.binary, args, {
    ...limits,
    // Identifies a dump that its engine died over (images.ts).
    cwd: directory,
    env: { PATH: runtime.criu.searchPath },
  })
  if (said.exitCode === 0) return
  const why = said.timedOut ? 'it took too long' : await criuErrors(join(directory, 'dump.log'))
  throw new Error(`a checkpoint failed: ${why || said.stderr.slice(-300)}`)
}

/** Returns the last errors in CRIU's log; runc only says where the log is. */
export async function criuErrors(log: string): Promise<string> {
  const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n')
  // Every call reports this one if the engine may not raise limits.
  const errors = lines.filter((line) => line.includes(' Error (') && !line.includes('RLIMIT_NOFILE'))
  return errors
    .slice(-3)
    .map((line) => line.replace(/^\(\S+\)\s+/, '').slice(0, 200))
    .join('; ')
}

/** Whether commands can run in a container that was just restored. */
export async function answers(
  runtime: Runtime,
  container: string,
  command: string[],
  signal: AbortSignal,
): Promise<boolean> {
  const args = [...runtime.globalArgs, 'exec', container, ...command]
  const said = await run(runtime.binary, args, { timeoutMs: ANSWER_TIMEOUT_MS, signal })
  return said.exitCode === 0
}

/** Sends SIGTERM to the first process of a container. */
export function terminateContainer(
  runtime: Runtime,
  container: string,
  signal: AbortSignal,
): Promise<RunResult> {
  const args = [...runtime.globalArgs, 'kill', container, 'TERM']
  return run(runtime.binary, args, { timeoutMs: runtime.deadlineMs, signal })
}

/**
 * Removes both runtimes' state of an ended container. Not with the runtime's `delete`, which starts a process, and in
 * runsc waits seconds for a gofer that has already ended.
 */
export async function forgetContainer(rootOf: (name: string) => string, container: string): Promise<void> {
  const files = [
    join(rootOf('runsc'), `runsc-${container}.sock`),
    join(rootOf('runsc'), `${container}_sandbox:${container}.state`),
    join(rootOf('runsc'), `${container}_sandbox:${container}.lock`),
  ]
  await Promise.all(files.map((path) => rm(path, { force: true })))
  await removeTree(join(rootOf('runc'), container))
}

/** Returns the names of the containers of which the runtimes have state. */
export async function listContainers(rootOf: (name: string) => string): Promise<string[]> {
  const lists = await Promise.all(
    ['runc', 'runsc'].map((name) => readdir(rootOf(name)).catch((): string[] => [])),
  )
  return [...new Set(lists.flat().map((name) => name.replace(/^runsc-|_sandbox:.*$|\.sock$/g, '')))]
}

/**
 * Returns the arguments of an exec in a terminal, whose master comes over a unix socket. With either runtime, the process of
 * the pid file is then an orphan, and ends as the command does.
 */
export function terminalArgs(
  runtime: Runtime,
  container: string,
  files: { processFile: string; pidFile: string; consoleSocket: string },
  cgroupChild: string | null,
): string[] {
  const { processFile, pidFile, consoleSocket } = files
  const quiet = runtime.class === 'gvisor' ? [] : ['--log', '/dev/null']
  const cgroup = cgroupChild === null ? [] : ['--cgroup', cgroupChild]
  const asked = ['exec', '--detach', '--console-socket', consoleSocket, '--process', processFile]
  return [...runtime.globalArgs, ...quiet, ...asked, '--pid-file', pidFile, ...cgroup, container]
}

/**
 * Returns the arguments of an exec whose process is described in a file; `pidFile` appears once it runs. `stderrFd`:
 * the runtime's descriptor that gVisor gives the command as its stderr, so that its own stderr has only its own
 * messages. runc prints nothing once the command could start; warnings before that would look like the command's.
 * `extraFd`: the runtime's descriptor that the command gets as its fourth one; for runc it must be the fourth.
 */
export function execArgs(
  runtime: Runtime,
  container: string,
  files: { processFile: string; pidFile: string },
  {
    cgroupChild = null,
    stderrFd = null,
    extraFd = null,
  }: { cgroupChild?: string | null; stderrFd?: number | null; extraFd?: number | null } = {},
): string[] {
  const common = ['--process', files.processFile, '--pid-file', files.pidFile]
  if (runtime.class === 'gvisor') {
    const stderr = stderrFd === null ? [] : ['--pass-fd', `${stderrFd}:2`]
    const extra = extraFd === null ? [] : ['--pass-fd', `${extraFd}:3`]
    return [...runtime.globalArgs, 'exec', ...common, ...stderr, ...extra, container]
  }
  const cgroup = cgroupChild === null ? [] : ['--cgroup', cgroupChild]
  const quiet = ['--log', '/dev/null']
  const extra = extraFd === null ? [] : ['--preserve-fds', '1']
  return [...runtime.globalArgs, ...quiet, 'exec', '--detach', ...common, ...cgroup, ...extra, container]
}
