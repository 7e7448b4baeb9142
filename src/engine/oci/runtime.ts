// The only file that knows how runc and runsc are called.

import { rm, writeFile } from 'node:fs/promises'
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
}

const RUNTIME_TIMEOUT_MS = 15_000

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

export function runcRuntime(root: string): Runtime {
  return {
    class: 'runc',
    binary: 'runc',
    launcher: '/usr/sbin/runc',
    root,
    globalArgs: ['--root', root],
    execDetaches: true,
  }
}

export function runscRuntime(root: string, launcher: string): Runtime {
  return {
    class: 'gvisor',
    binary: 'runsc',
    launcher,
    root,
    globalArgs: ['--root', root, ...RUNSC_FLAGS],
    execDetaches: false,
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

export function startContainer(runtime: Runtime, container: string): Promise<RunResult> {
  const args = [...runtime.globalArgs, 'start', container]
  return run(runtime.launcher, args, { timeoutMs: RUNTIME_TIMEOUT_MS })
}

export function signalContainer(
  runtime: Runtime,
  container: string,
  signal: 'TERM' | 'KILL',
): Promise<RunResult> {
  return call(runtime, ['kill', container, signal])
}

/**
 * Drops the runtime's state of a container that has ended. Done by hand, not by the runtime's `delete`: that
 * is a process start, and runsc's waits seconds for a gofer that has already ended.
 */
export async function forgetContainer(runtime: Runtime, container: string): Promise<void> {
  const names = [
    container,
    `runsc-${container}.sock`,
    `${container}_sandbox:${container}.state`,
    `${container}_sandbox:${container}.lock`,
  ]
  await Promise.all(names.map((name) => rm(join(runtime.root, name), { recursive: true, force: true })))
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

function call(runtime: Runtime, args: string[]): Promise<RunResult> {
  return run(runtime.binary, [...runtime.globalArgs, ...args], { timeoutMs: RUNTIME_TIMEOUT_MS })
}
