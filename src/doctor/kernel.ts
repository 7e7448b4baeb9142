// Kernel features that disks, limits and isolation need.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { release } from 'node:os'
import { readSharedCounters, type SharedCounter } from '../engine/oci/kernel/shared-counters.ts'
import { SECOND } from '../lib/clock.ts'
import { run } from '../lib/process.ts'
import { type Check, fail, type Finding, ok, warn } from './check.ts'
import { isOlder } from '../lib/versions.ts'

/** The kernel of Debian 12. Berth is not tested on older ones, which lack idmapped mounts and overlay features. */
const OLDEST_KERNEL = '6.1'

export const kernelChecks: Check[] = [
  { name: 'kernel', run: async () => kernelFinding(release()) },
  { name: 'cgroups', run: async () => cgroupFinding('/sys/fs/cgroup') },
  { name: 'btrfs', run: async () => fileSystem('btrfs', 'The disks of units need it.') },
  { name: 'overlay', run: async () => fileSystem('overlay', 'The disks of units need it.') },
  { name: 'seccomp', run: async () => seccompFinding(await readFile('/proc/self/status', 'utf8')) },
  { name: 'shared counters', run: async () => counterFinding(readSharedCounters()) },
]

export function kernelFinding(version: string): Finding {
  const number = /^\d+\.\d+/.exec(version)?.[0] ?? '0'
  if (!isOlder(number, OLDEST_KERNEL)) return ok(version)
  return warn(`${version}, older than ${OLDEST_KERNEL}`, 'Berth is not tested on it: update the system.')
}

const NEEDED_CONTROLLERS = ['cpu', 'memory', 'pids'] as const

export async function cgroupFinding(root: string): Promise<Finding> {
  const unified = existsSync(`${root}/cgroup.controllers`)
  const here = unified
    ? (await readFile(`${root}/cgroup.controllers`, 'utf8')).trim().split(/\s+/)
    : ['cpu', 'memory', 'pids', 'freezer', 'blkio'].filter((name) =>
        existsSync(`${root}/${name}/cgroup.procs`),
      )
  const needed = unified ? NEEDED_CONTROLLERS : [...NEEDED_CONTROLLERS, 'freezer']
  const missing = needed.filter((name) => !here.includes(name))
  const version = unified ? 'version 2' : 'version 1'
  if (missing.length === 0) return ok(`${version}, with ${here.join(', ')}`)
  return fail(
    `${version}, without ${missing.join(', ')}`,
    'Limits of units need these controllers: enable them on the kernel command line (cgroup_enable=…).',
  )
}

async function fileSystem(name: string, why: string): Promise<Finding> {
  const isKnown = async () =>
    (await readFile('/proc/filesystems', 'utf8'))
      .split('\n')
      .some((line) => line.trim().split('\t').at(-1) === name)
  if (await isKnown()) return ok('supported')
  await run('modprobe', ['--quiet', name], { timeoutMs: 20 * SECOND }).catch(() => null)
  if (await isKnown()) return ok('supported, as a module')
  return fail('not supported by this kernel', `${why} Use a kernel with ${name}, such as Debian's own.`)
}

export function counterFinding(counters: SharedCounter[]): Finding {
  const low = counters.filter(({ isLow, canRaise }) => isLow && !canRaise)
  if (low.length === 0) return ok('high enough for units of class runc, or raised when Berth starts')
  return warn(
    `one unit of class runc can exhaust ${low.map(({ name }) => name).join(', ')} for all others`,
    `Units of class runc share them. Set: ${low.map(({ name, atLeast }) => `${name}=${atLeast}`).join(' ')}`,
  )
}

function seccompFinding(status: string): Finding {
  if (/^Seccomp:/m.test(status)) return ok('supported')
  return fail('not supported by this kernel', 'Isolation needs it. Use a kernel such as Debian’s own.')
}
