// The host's part of one command: two files, a control group, and how the command is found in a sandbox.

import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineContext, Machine } from '../context.ts'
import { createChild } from '../kernel/cgroups.ts'
import type { RunPaths } from '../paths.ts'
import type { OciConfig, Process } from '../runtime/bundle.ts'
import type { ExecFiles } from './start-exec.ts'

/** In the environment of a command in gVisor, where the host sees no process: it is found by this. */
export function markerOf(name: string): string {
  return `BERTH_EXEC=${name}`
}

export function filesOf(paths: RunPaths, name: string): ExecFiles {
  return { processFile: join(paths.execs, `${name}.json`), pidFile: join(paths.execs, `${name}.pid`) }
}

/** A group of the exec's own below the machine's, so that exactly its processes can be killed. */
export function commandGroup(host: EngineContext, paths: RunPaths, name: string): string {
  createChild(host.cgroups, paths.container, name)
  return host.cgroups.version === 1 ? `freezer:${name}` : name
}

export async function loadProcess(machine: Machine, paths: RunPaths): Promise<Process> {
  machine.process ??= (JSON.parse(await readFile(paths.config, 'utf8')) as OciConfig).process
  return machine.process
}

export async function removeFiles({ processFile, pidFile }: ExecFiles): Promise<void> {
  await Promise.all([rm(processFile, { force: true }), rm(pidFile, { force: true })])
}
