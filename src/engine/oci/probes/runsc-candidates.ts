// The gVisor programs of this machine, in the order in which they are tried: the operator's, one that did not come with the
// system, the one that Berth has built, the system's own.

import { realpath } from 'node:fs/promises'
import { isExecutable, programsNamed, run } from '../../../lib/process.ts'
import { BUILT_RUNSC } from '../runsc-build/pinned.ts'
import type { DriverOptions } from '../runtime/driver.ts'

export type Candidate = { path: string; from: string }

const FROM_SYSTEM = 'of the system'

const DPKG_TIMEOUT_MS = 10_000

/** Those that exist; the operator's also if it does not. */
export async function runscCandidates({
  runsc,
  preferredRunsc = null,
}: Pick<DriverOptions, 'runsc' | 'preferredRunsc'>): Promise<Candidate[]> {
  if (runsc !== null) return [{ path: runsc, from: 'given' }]
  const preferred = preferredRunsc === null ? [] : [{ path: preferredRunsc, from: 'BERTH_RUNSC' }]
  const installed = await installedOnes()
  const added = installed
    .filter(({ ofSystem }) => !ofSystem)
    .map(({ path }) => ({ path, from: 'installed here' }))
  const own = (await isExecutable(BUILT_RUNSC)) ? [{ path: BUILT_RUNSC, from: 'built by Berth' }] : []
  const system = installed.filter(({ ofSystem }) => ofSystem).map(({ path }) => ({ path, from: FROM_SYSTEM }))
  return [...preferred, ...added, ...own, ...system]
}

/** Whether the machine has none but its system's. */
export async function needsBuild(options: Pick<DriverOptions, 'runsc' | 'preferredRunsc'>): Promise<boolean> {
  const [first] = await runscCandidates(options)
  return options.runsc === null && (first === undefined || first.from === FROM_SYSTEM)
}

async function installedOnes(): Promise<{ path: string; ofSystem: boolean }[]> {
  const named = await programsNamed('runsc')
  const found = [...new Set(await Promise.all(named.map(async (path) => await realpath(path))))]
  return await Promise.all(found.map(async (path) => ({ path, ofSystem: await isOfSystem(path) })))
}

/** gVisor's authors have a package of the same name and path: who maintains it tells them apart. */
async function isOfSystem(path: string): Promise<boolean> {
  const dpkg = (args: string[]) => run('dpkg-query', args, { timeoutMs: DPKG_TIMEOUT_MS }).catch(() => null)
  const owner = (await dpkg(['--search', path]))?.stdout.split(':')[0] ?? ''
  if (owner === '') return false
  const maintainer = (await dpkg(['--show', '--showformat=${Maintainer}', owner]))?.stdout ?? ''
  return /[@.](?:debian|ubuntu)\./.test(maintainer)
}
