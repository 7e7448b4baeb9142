// The only file that knows how runc and runsc are called.

import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run, type RunResult } from '../../lib/process.ts'
import type { IsolationClass } from '../engine.ts'

export type Runtime = {
  class: IsolationClass
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
}

export type RuntimeOptions = { runc: string; runsc: string; deadlineMs: number }

/** Where Debian puts them. */
export const runtimeDefaults: RuntimeOptions = {
  runc: '/usr/sbin/runc',
  runsc: '/usr/bin/runsc',
  deadlineMs: 30_000,
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

export function runcRuntime(root: string, { runc, deadlineMs }: RuntimeOptions): Runtime {
  return {
    class: 'runc',
    binary: runc,
    launcher: runc,
    root,
    globalArgs: ['--root', root],
    execDetaches: true,
    deadlineMs,
  }
}

/** `launcher`: runsc itself, or what masks the host from it. */
export function runscRuntime(root: string, options: RuntimeOptions, launcher = options.runsc): Runtime {
  return {
    class: 'gvisor',
    binary: options.runsc,
    launcher,
    root,
    globalArgs: ['--root', root, ...RUNSC_FLAGS],
    execDetaches: false,
    deadlineMs: options.deadlineMs,
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
    join(rootOf('runc'), container),
    join(rootOf('runsc'), `runsc-${container}.sock`),
    join(rootOf('runsc'), `${container}_sandbox:${container}.state`),
    join(rootOf('runsc'), `${container}_sandbox:${container}.lock`),
  ]
  await Promise.all(files.map((path) => rm(path, { recursive: true, force: true })))
}

/** Names of the containers of which the runtimes have state. */
export async function listContainers(rootOf: (name: string) => string): Promise<string[]> {
  const lists = await Promise.all(
    ['runc', 'runsc'].map((name) => readdir(rootOf(name)).catch((): string[] => [])),
  )
  return [...new Set(lists.flat().map((name) => name.replace(/^runsc-|_sandbox:.*$|\.sock$/g, '')))]
}

/** Arguments of an exec whose process is described in a file; `pidFile` appears once it runs. */
export function execArgs(
  runtime: Runtime,
  container: string,
  files: { processFile: string; pidFile: string },
  cgroupChild: string | null,
): string[] {
  const common = ['--process', files.processFile, '--pid-file', files.pidFile]
  if (runtime.class === 'gvisor') return [...runtime.globalArgs, 'exec', ...common, container]
  const cgroup = cgroupChild === null ? [] : ['--cgroup', cgroupChild]
  return [...runtime.globalArgs, 'exec', '--detach', ...common, ...cgroup, container]
}
