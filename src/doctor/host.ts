// Disk space and memory, and settings that let one tenant's code see or harm another's (reliability S35).

import { readdir, readFile, statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { Config } from '../config.ts'
import { mayMount } from '../lib/may-mount.ts'
import { type Check, fail, type Finding, ok, warn } from './check.ts'

const GB = 1024 ** 3
/** Space for the database, logs and a first image. */
const LEAST_FREE_GB = 2
const LEAST_MEMORY_GB = 2

export const hostChecks: Check[] = [
  { name: 'root', run: async () => rootFinding(process.getuid?.() ?? -1) },
  {
    name: 'data directory',
    run: async ({ dataDir }) => pathFinding(dataDir, (await text('/proc/self/mountinfo')) ?? ''),
  },
  { name: 'disk', run: diskFinding },
  { name: 'put aside', run: asideFinding },
  { name: 'memory', run: async () => memoryFinding(totalmem()) },
]

/** Of a machine without an engine. */
export const serverChecks: Check[] = [
  ...hostChecks,
  {
    name: 'role',
    run: async () =>
      ok('a server without an engine: its units are on hosts that join (npm run hosts -- list)'),
  },
  { name: 'privileges', run: async (config) => privilegesFinding(config, mayMount()) },
]

export function privilegesFinding({ databaseUrl }: Pick<Config, 'databaseUrl'>, mounts: boolean): Finding {
  if (mounts) return ok('its processes see only what they need')
  if (databaseUrl !== null) return ok('none but for its users: the container confines its processes')
  return fail(
    'it may not mount, as in a container without privileges, and its own Postgres needs that',
    'Set DATABASE_URL to a Postgres of yours.',
  )
}

export const tenancyChecks: Check[] = [
  { name: 'swap', run: async () => swapFinding((await text('/proc/swaps')) ?? '') },
  { name: 'SMT', run: async () => smtFinding(await text('/sys/devices/system/cpu/smt/active')) },
  { name: 'KSM', run: async () => ksmFinding(await text('/sys/kernel/mm/ksm/run')) },
  { name: 'mitigations', run: async () => mitigationsFinding((await text('/proc/cmdline')) ?? '') },
  { name: 'core dumps', run: async () => coreFinding((await text('/proc/sys/kernel/core_pattern')) ?? '') },
]

function rootFinding(uid: number): Finding {
  if (uid === 0) return ok('yes')
  return fail('no', 'Berth makes network namespaces and mounts: start it as root, for example with sudo.')
}

/** Mount options separate paths by commas and colons, and kernel tables by spaces. */
export function pathFinding(path: string, mountinfo = ''): Finding {
  const hidden = mountBelowTmp(path, mountinfo)
  if (hidden !== null) {
    return fail(
      `${path} lies on ${hidden}, a mount that confined processes do not see`,
      'Set BERTH_DATA_DIR to a path that is not on a mount below /tmp, /var/tmp or /dev/shm, such as /var/lib/berth.',
    )
  }
  if (/^\/[\w./@+-]+$/.test(path) && path.length <= 100) return ok(path)
  return fail(
    `"${path}" cannot be used`,
    'Set BERTH_DATA_DIR to a path of at most 100 letters, digits and . _ - + @ signs.',
  )
}

/** Confined processes see the files in world-writable directories, but not file systems mounted there. */
function mountBelowTmp(path: string, mountinfo: string): string | null {
  const points = mountinfo.split('\n').map((line) => line.split(' ')[4] ?? '')
  const found = points.find(
    (point) => /^\/(?:tmp|var\/tmp|dev\/shm)\/./.test(point) && `${path}/`.startsWith(`${point}/`),
  )
  return found ?? null
}

async function diskFinding({ dataDir, reserveGb }: Config): Promise<Finding> {
  const freeGb = await freeSpaceGb(dataDir)
  const detail = `${freeGb.toFixed(1)} GB free for ${dataDir}`
  const advice = 'Free some space, or set BERTH_DATA_DIR to a directory on a larger disk.'
  if (freeGb < LEAST_FREE_GB) return fail(detail, advice)
  if (freeGb < reserveGb + LEAST_FREE_GB) return warn(`${detail}: few units will fit`, advice)
  return ok(detail)
}

async function asideFinding({ dataDir }: Config): Promise<Finding> {
  const aside = await readdir(join(dataDir, 'aside')).catch(() => [])
  if (aside.length === 0) return ok('nothing')
  return warn(
    `${aside.length} machines or disks that the database does not know`,
    'Check that this is the right database. "npm run aside -- list" shows them and the reason.',
  )
}

/** The free space of the file system that holds the directory, or will hold it. */
async function freeSpaceGb(directory: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(directory)
    return (bavail * bsize) / GB
  } catch (error) {
    if (directory === '/') throw error
    return await freeSpaceGb(dirname(directory))
  }
}

function memoryFinding(bytes: number): Finding {
  const detail = `${(bytes / GB).toFixed(1)} GB`
  if (bytes / GB >= LEAST_MEMORY_GB) return ok(detail)
  return warn(detail, `Berth and a few small units need ${LEAST_MEMORY_GB} GB.`)
}

export function swapFinding(swaps: string): Finding {
  const areas = swaps.trim().split('\n').slice(1)
  if (areas.length === 0) return ok('off')
  return warn(
    `on (${areas.length} area)`,
    'Memory of units can reach the disk: switch swap off, or encrypt it.',
  )
}

function smtFinding(active: string | null): Finding {
  if (active !== '1') return ok('off')
  return warn(
    'on',
    'Two tenants can share a core and leak data to each other: boot with "nosmt" if you do not trust all tenants.',
  )
}

function ksmFinding(run: string | null): Finding {
  if (run === null || run === '0') return ok('off')
  return warn('on', 'Merged memory lets tenants learn about each other: echo 0 > /sys/kernel/mm/ksm/run')
}

export function mitigationsFinding(commandLine: string): Finding {
  const off = /\b(mitigations=off|nospectre_v[12]|nopti|spectre_v2=off)\b/.exec(commandLine)?.[0]
  if (off === undefined) return ok('as the kernel decides')
  return warn(
    `switched off (${off})`,
    'Tenants can read each other’s memory: remove it from the kernel command line.',
  )
}

export function coreFinding(pattern: string): Finding {
  if (!pattern.startsWith('|')) return ok(`to the file ${pattern}`)
  return warn(
    `piped to ${pattern.slice(1).split(' ')[0]}`,
    'A crash in a unit could start a program of the host. Berth sets the core limit of units to 0: do not raise it.',
  )
}

async function text(path: string): Promise<string | null> {
  return await readFile(path, 'utf8').then(
    (content) => content.trim(),
    () => null,
  )
}
