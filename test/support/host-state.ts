// What of an instance can be seen on the host: everything an engine makes carries the instance's id, its
// data directory or its subnet, so that what it leaves behind can be found by name.

import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { runOrThrow } from '../../src/lib/process.ts'
import type { Instance } from '../../src/supervisor/instance.ts'

export type HostState = {
  processes: string[]
  cgroups: string[]
  namespaces: string[]
  links: string[]
  addresses: string[]
  routes: string[]
  mounts: string[]
  loopDevices: string[]
  tables: string[]
}

/**
 * All of it that belongs to an instance; every list is empty once it is off the host. `network`: the path of the network
 * namespace that it runs in, if that is not the host's own.
 */
export async function hostStateOf(
  instance: Instance,
  dataDir: string,
  network: string | null = null,
): Promise<HostState> {
  const subnet = instance.subnet.replace(/\.0\.0\/16$/, '.')
  const names = namesOnHost(instance, dataDir)
  const isOurs = (link: string) => link.startsWith(`b${instance.id}`)
  const named = (lines: string[]) => lines.filter((line) => names.some((name) => line.includes(name)))
  const inside = async (command: string, ...args: string[]) =>
    (network === null
      ? await output(command, args)
      : await output('nsenter', [`--net=${network}`, command, ...args])
    ).split('\n')
  const ip = async (...args: string[]) => await inside('ip', '-o', ...args)
  return {
    processes: (await processesOf(names)).map(({ pid, command, cwd, cgroup }) =>
      [pid, command, cwd, cgroup].join(' '),
    ),
    cgroups: named(await cgroups()),
    namespaces: named(await ip('netns', 'list')),
    links: (await ip('link')).flatMap((line) => /^\d+: ([^:@]+)/.exec(line)?.[1] ?? []).filter(isOurs),
    addresses: (await ip('-4', 'address')).filter((line) => line.includes(` ${subnet}`)),
    routes: (await ip('-4', 'route', 'show', 'table', 'all')).filter((line) => line.includes(subnet)),
    mounts: named((await readFile('/proc/self/mountinfo', 'utf8')).split('\n')),
    loopDevices: (await isHeldElsewhere(dataDir)) ? [] : named(await loopDevices()),
    tables: named(await inside('nft', 'list', 'tables')),
  }
}

export const cleanHost: HostState = {
  processes: [],
  cgroups: [],
  namespaces: [],
  links: [],
  addresses: [],
  routes: [],
  mounts: [],
  loopDevices: [],
  tables: [],
}

export type Process = { pid: number; command: string; cwd: string; cgroup: string }

/** What tells that a thing belongs to an instance. */
export function namesOnHost({ id }: Instance, dataDir: string): string[] {
  return [`berth-${id}`, `berth_${id}`, `/run/berth/${id}/`, dataDir]
}

/** Processes that carry one of the names; this process is not of interest. */
export async function processesOf(names: string[]): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const all = await Promise.all(
    pids.map(async (pid) => {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      // A sandbox names itself by its directory alone.
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '')
      const cgroup = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
      return {
        pid: Number(pid),
        command: command.replaceAll('\0', ' '),
        cwd,
        cgroup: cgroup.replaceAll('\n', ' '),
      }
    }),
  )
  return all.filter(({ command, cwd, cgroup }) =>
    names.some((name) => [command, cwd, cgroup].some((text) => text.includes(name))),
  )
}

async function cgroups(): Promise<string[]> {
  const root = '/sys/fs/cgroup'
  const trees = [root, ...(await directories(root))]
  const parents = await Promise.all(trees.map(directories))
  return parents.flat()
}

async function directories(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(path, entry.name))
}

async function loopDevices(): Promise<string[]> {
  const devices = (await readdir('/sys/block')).filter((name) => name.startsWith('loop'))
  return await Promise.all(
    devices.map((name) => readFile(`/sys/block/${name}/loop/backing_file`, 'utf8').catch(() => '')),
  )
}

/**
 * Whether somebody else's mount namespace took a copy of a mount while it was there. Its loop device stays
 * until that process ends, whatever the engine does; the engine's own processes are looked for above.
 */
async function isHeldElsewhere(directory: string): Promise<boolean> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const tables = await Promise.all(
    pids.map((pid) => readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '')),
  )
  return tables.some((table) => table.includes(directory))
}

async function output(command: string, args: string[]): Promise<string> {
  return await runOrThrow(command, args, { timeoutMs: 20_000 })
}
