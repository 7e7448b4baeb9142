// Which isolation classes this host can run and which of them keep memory. Like the engine, it runs a container in
// each class to find out.

import { randomInt } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { installMachinePrograms } from '../engine/oci/machine-programs/install.ts'
import { createPaths, type Paths } from '../engine/oci/paths.ts'
import { type Probe, probeClasses } from '../engine/oci/probes/probe.ts'
import { type DriverOptions, driverOptions } from '../engine/oci/runtime/driver.ts'
import { findKvm } from '../engine/oci/probes/gvisor.ts'
import type { KvmFinding } from '../engine/oci/probes/platform.ts'
import { SECOND } from '../lib/clock.ts'
import { run } from '../lib/process.ts'
import { type Check, fail, type Finding, ok, warn } from './check.ts'

export const isolationChecks: Check[] = [
  { name: 'isolation', run: async (config) => await probeFinding(config, classesFinding) },
  { name: 'memory of units', run: async (config) => await probeFinding(config, memoryFinding) },
  { name: 'hardware virtualization', run: virtualizationFinding },
  { name: 'qgroups', run: quotaFinding },
]

async function probeFinding(config: Config, read: (probe: Probe) => Finding): Promise<Finding> {
  return await withProbes(config, async (paths, options) => {
    try {
      return read(await probeClasses(paths, scratchId(), config.isolation, options))
    } catch (error) {
      return fail(error instanceof Error ? error.message : String(error), 'Run "npm run setup".')
    }
  })
}

async function virtualizationFinding(config: Config): Promise<Finding> {
  return await withProbes(config, async (paths, options) =>
    virtualizationSaid(await findKvm(paths, scratchId(), options)),
  )
}

export function virtualizationSaid(finding: KvmFinding | null): Finding {
  if (finding === null) return ok('not tried, since there is no gVisor that works')
  if (finding.kind === 'absent') return ok('this host has no /dev/kvm: sandboxes run without it')
  if (finding.kind === 'fails')
    return ok(
      `/dev/kvm is there, but a sandbox that uses it fails (${finding.said}): sandboxes run without it, as they do on a paravirtual KVM`,
    )
  const { kvm, systrap } = finding.ms
  const compared = `the same work takes ${Math.round(kvm)} ms with it and ${Math.round(systrap)} ms without`
  return ok(`a sandbox can use it, and ${compared}: it is ${finding.isQuicker ? 'used' : 'not used'}`)
}

async function withProbes(
  config: Config,
  work: (paths: Paths, options: DriverOptions) => Promise<Finding>,
): Promise<Finding> {
  return await withScratch(async (dir) => {
    const paths = createPaths({ dataDir: dir, runDir: dir })
    for (const path of [paths.runs, paths.exits]) await mkdir(path, { recursive: true })
    await installMachinePrograms(paths)
    return await work(paths, { ...driverOptions(config), keepsPrograms: false })
  })
}

function classesFinding({ capabilities }: Probe): Finding {
  const { classes, defaultClass } = capabilities
  const listed = classes.map(
    ({ class: name, available, detail }) => `${name} ${available ? 'works' : 'does not'} (${detail})`,
  )
  const detail = `${listed.join('; ')}. Default: ${defaultClass}`
  if (defaultClass === 'gvisor') return ok(detail)
  return warn(detail, 'runc shares the kernel with units: give it to teams you trust only.')
}

export function memoryFinding({ capabilities: { classes } }: Pick<Probe, 'capabilities'>): Finding {
  const listed = classes.map(
    ({ class: name, memory: { available, detail } }) =>
      `${name} ${available ? 'keeps' : 'loses'} it (${detail})`,
  )
  if (classes.some(({ memory }) => memory.available)) return ok(listed.join('; '))
  return warn(
    listed.join('; '),
    'Units lose their memory in a long sleep, and forks copy only disks: run "npm run setup", or set BERTH_CRIU to a newer CRIU.',
  )
}

/** Tests disk limits on a small pool of its own. */
async function quotaFinding(): Promise<Finding> {
  return await withScratch(async (dir) => {
    const [file, mount] = [join(dir, 'pool'), join(dir, 'mount')]
    await mkdir(mount)
    const steps: [string, string[]][] = [
      ['truncate', ['--size=128M', file]],
      ['mkfs.btrfs', ['--quiet', file]],
      ['mount', ['-t', 'btrfs', '-o', 'loop', file, mount]],
      ['btrfs', ['quota', 'enable', mount]],
      ['btrfs', ['subvolume', 'create', join(mount, 'disk')]],
      ['btrfs', ['qgroup', 'limit', '16M', join(mount, 'disk')]],
    ]
    try {
      for (const [command, args] of steps) {
        const { exitCode, stderr } = await run(command, args, { timeoutMs: 30 * SECOND })
        if (exitCode === 0) continue
        return fail(
          `${command} ${args[0] ?? ''} failed: ${stderr.trim()}`,
          'The disks of units need btrfs with quotas and loop devices.',
        )
      }
      return ok('btrfs limits disks')
    } finally {
      await run('umount', [mount], { timeoutMs: 30 * SECOND })
    }
  })
}

/** Below /run, because /tmp may be mounted `nodev,noexec`, which a container's files cannot use. */
async function withScratch<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp('/run/berth-doctor-')
  try {
    return await work(dir)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

function scratchId(): string {
  return randomInt(36 ** 3, 36 ** 4).toString(36)
}
