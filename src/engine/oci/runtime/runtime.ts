// The only file that knows how runc and runsc are called.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run, type RunResult } from '../../../lib/process.ts'
import type { IsolationClass } from '../../engine.ts'
import type { Criu } from '../checkpoint/criu.ts'
import { removeTree } from '../kernel/mounts.ts'

export type Runtime = {
  class: IsolationClass
  version: string
  binary: string
  /** What creates and starts containers: for runsc it may be a wrapper (`writeMaskedRunsc`). */
  launcher: string
  /** Where it keeps its state of each container. */
  root: string
  globalArgs: string[]
  /** runc passes our pipes on and leaves; runsc stays until the command ends. */
  execDetaches: boolean
  /** How long a call may take before it is killed: far longer than one does on a busy host. */
  deadlineMs: number
  /**
   * How much of a machine's log conmon writes before it drops the file it writes and begins another: what bounds a log
   * while no engine cuts it into parts (decision 0068).
   */
  logFileBytes: number
  /** What keeps the memory of its machines, where a probe has shown that it does. */
  criu: Criu | null
}

export type RuntimeOptions = {
  runc: string
  runsc: string
  deadlineMs: number
  logFileBytes: number
  /** Programs to try, the first that works is taken. Default: those of criu.ts. */
  criu?: string[]
}

const ANSWER_TIMEOUT_MS = 10_000

/** Where Debian puts them. */
export const runtimeDefaults: RuntimeOptions = {
  runc: '/usr/sbin/runc',
  runsc: '/usr/bin/runsc',
  deadlineMs: 30_000,
  logFileBytes: 128 * 1024 * 1024,
}

export function runtimeOptions({ criu }: { criu: string | null }): RuntimeOptions {
  return criu === null ? runtimeDefaults : { ...runtimeDefaults, criu: [criu] }
}

/**
 * directfs off: the sandbox itself opens no host file. Exclusive file access: nothing but the machine
 * touches its disk and volume while it runs. overlay2 off: the default would lose the disk at exit.
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
    deadlineMs,
    logFileBytes,
    criu: null,
  }
}

/** `launcher`: runsc itself, or what masks the host from it. */
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
    deadlineMs: options.deadlineMs,
    logFileBytes: options.logFileBytes,
    criu: null,
  }
}

/**
 * Kernels from 6.17 on made net.core.rmem_default a setting of each network namespace; runsc of 2024 and
 * older takes its presence for the host's namespace and refuses. With nothing under /proc/sys/net it does not.
 */
export async function writeMaskedRunsc(directory: string, runsc: string): Promise<string> {
  const path = join(directory, 'runsc-masked')
  const script = `#!/bin/sh
exec unshare --mount --propagation slave /bin/sh -c 'mount -t tmpfs -o ro none /proc/sys/net && exec "$0" "$@"' ${runsc} "$@"
`
  await writeFile(path, script, { mode: 0o700 })
  return path
}

/** Starts what was created. Repeating it succeeds. */
export async function startContainer(
  runtime: Runtime,
  container: string,
  signal: AbortSignal,
): Promise<{ kind: 'started' } | { kind: 'failed'; reason: string }> {
  const args = [...runtime.globalArgs, 'start', container]
  const said = await run(runtime.launcher, args, { timeoutMs: runtime.deadlineMs, signal })
  if (said.exitCode === 0 || /already running|in state running/.test(said.stderr)) return { kind: 'started' }
  return { kind: 'failed', reason: said.timedOut ? 'the runtime hung' : said.stderr }
}

/**
 * Writes what a container that stands still has in memory to a directory. It runs on afterwards, as it was found:
 * standing still.
 */
export async function checkpointContainer(
  runtime: Runtime,
  container: string,
  directory: string,
  limits: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  if (!runtime.criu) throw new Error(`${runtime.class} keeps no memory`)
  const place = ['--image-path', directory, '--work-path', directory]
  const args = [...runtime.globalArgs, 'checkpoint', '--leave-running', ...place, container]
  const said = await run(runtime.binary, args, {
    ...limits,
    // By which a dump is known that its engine died over (images.ts).
    cwd: directory,
    env: { PATH: runtime.criu.searchPath },
  })
  if (said.exitCode === 0) return
  const why = said.timedOut ? 'it took too long' : await criuErrors(join(directory, 'dump.log'))
  throw new Error(`a checkpoint failed: ${why || said.stderr.slice(-300)}`)
}

/** The last of what CRIU calls an error in its log; runc only says where that is. */
export async function criuErrors(log: string): Promise<string> {
  const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n')
  // One that every call has where the engine may not raise limits.
  const errors = lines.filter((line) => line.includes(' Error (') && !line.includes('RLIMIT_NOFILE'))
  return errors
    .slice(-3)
    .map((line) => line.replace(/^\(\S+\)\s+/, '').slice(0, 200))
    .join('; ')
}

/** Whether commands can be run in a container that was just restored. */
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

/** Gives the first process of a container SIGTERM. */
export function terminateContainer(
  runtime: Runtime,
  container: string,
  signal: AbortSignal,
): Promise<RunResult> {
  const args = [...runtime.globalArgs, 'kill', container, 'TERM']
  return run(runtime.binary, args, { timeoutMs: runtime.deadlineMs, signal })
}

/**
 * Drops both runtimes' state of a container that has ended. Done by hand, not by the runtime's `delete`: that
 * is a process start, and runsc's waits seconds for a gofer that has already ended.
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

/** Names of the containers of which the runtimes have state. */
export async function listContainers(rootOf: (name: string) => string): Promise<string[]> {
  const lists = await Promise.all(
    ['runc', 'runsc'].map((name) => readdir(rootOf(name)).catch((): string[] => [])),
  )
  return [...new Set(lists.flat().map((name) => name.replace(/^runsc-|_sandbox:.*$|\.sock$/g, '')))]
}

/**
 * Arguments of an exec whose process is described in a file; `pidFile` appears once it runs. `stderrFd`: the runtime's
 * descriptor that gVisor gives the command as its stderr, so that its own stderr carries its own words alone. runc
 * has nothing to say once it could begin; warnings that it logs before would look like the command's. `reportFd`: the
 * runtime's descriptor that the command gets as its fourth one; runc's has to be its own fourth.
 */
export function execArgs(
  runtime: Runtime,
  container: string,
  files: { processFile: string; pidFile: string },
  {
    cgroupChild = null,
    stderrFd = null,
    reportFd = null,
  }: { cgroupChild?: string | null; stderrFd?: number | null; reportFd?: number | null } = {},
): string[] {
  const common = ['--process', files.processFile, '--pid-file', files.pidFile]
  if (runtime.class === 'gvisor') {
    const stderr = stderrFd === null ? [] : ['--pass-fd', `${stderrFd}:2`]
    const report = reportFd === null ? [] : ['--pass-fd', `${reportFd}:3`]
    return [...runtime.globalArgs, 'exec', ...common, ...stderr, ...report, container]
  }
  const cgroup = cgroupChild === null ? [] : ['--cgroup', cgroupChild]
  const quiet = ['--log', '/dev/null']
  const report = reportFd === null ? [] : ['--preserve-fds', '1']
  return [...runtime.globalArgs, ...quiet, 'exec', '--detach', ...common, ...cgroup, ...report, container]
}
