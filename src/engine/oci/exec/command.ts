// The host's part of one command: two files, a control group, and how the command is found in a sandbox.

import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EngineContext, Machine } from '../machine/context.ts'
import { createChild } from '../kernel/cgroup-children.ts'
import type { RunPaths } from '../paths.ts'
import { execProcess, HELPER, type OciConfig, type Process } from '../runtime/bundle.ts'
import type { StandbyKind } from '../machine/standbys.ts'
import type { ExecFiles } from '../runtime/driver.ts'

export function newExecName(): string {
  return `exec-${randomBytes(6).toString('hex')}`
}

/** A shell of the helper that waits for its script, which brings the command's environment and directory. */
export const waitingShell = [HELPER, 'sh', '-s']

/** What the runtime is to start ahead of a command. */
export function aheadOf(main: Process, kind: StandbyKind, args: string[]): Process {
  const env = main.env.filter((entry) => entry.startsWith('HOME='))
  return { ...execProcess(main, args, { asRoot: kind === 'root' }), env, cwd: '/' }
}

/** In the environment of a command in gVisor, where the host sees no process: it is found by this. */
export function markerOf(name: string): string {
  return `BERTH_EXEC=${name}`
}

export function withMarker<T extends Pick<Process, 'env'>>(command: T, marker: string): T {
  return { ...command, env: [...command.env, marker] }
}

export function filesOf(paths: RunPaths, name: string): ExecFiles {
  return { processFile: join(paths.execs, `${name}.json`), pidFile: join(paths.execs, `${name}.pid`) }
}

/** A group of the exec's own below the machine's, so that exactly its processes can be killed. */
export function commandGroup(host: EngineContext, paths: RunPaths, name: string): string {
  createChild(host.cgroups, paths.container, name)
  return host.cgroups.version === 1 ? `freezer:${name}` : name
}

/** A configuration may leave out those that are empty. */
function withLists({ user, capabilities, ...process }: Process): Process {
  const none = { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] }
  return {
    ...process,
    user: { ...user, additionalGids: (user.additionalGids as number[] | undefined) ?? [] },
    capabilities: { ...none, ...capabilities },
  }
}

export async function loadProcess(machine: Machine, paths: RunPaths): Promise<Process> {
  machine.process ??= withLists((JSON.parse(await readFile(paths.config, 'utf8')) as OciConfig).process)
  return machine.process
}

/** They are in memory: to have another thread do it takes longer. */
export function removeFiles({ processFile, pidFile }: ExecFiles): void {
  for (const file of [processFile, pidFile]) rmSync(file, { force: true })
}
