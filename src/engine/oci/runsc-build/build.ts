// Builds the pinned gVisor: fetches its sources through Go's module proxy, which Go compares with go.sum, changes them as the
// patches here say, and compiles a static program. Takes a minute or two of two processors, and 1.2 GB of disk meanwhile.
//
// All of it happens in a directory beside the result, which gets its name once it is whole: what a killed build leaves is
// removed by the next.

import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rename, rm, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { lockFile } from '../../../lib/file-lock.ts'
import { type BuildSettings, provideGo } from './go.ts'
import { BUILT_VERSION, GVISOR } from './pinned.ts'
import { step } from './step.ts'

const HERE = import.meta.dirname
const WORK = '.building-'
/** With the page cache that linking wants. */
const NEEDED_BYTES = 2 * 1024 ** 3

/** `target`: the path of the program. Returns `busy` where another process builds it. Throws a sentence if it cannot be built. */
export async function buildRunsc(
  target: string,
  settings: BuildSettings,
): Promise<'built' | 'there' | 'busy'> {
  const home = dirname(target)
  const builds = dirname(home)
  await mkdir(builds, { recursive: true, mode: 0o755 })
  const lock = await lockFile(join(builds, '.lock'))
  if ('owner' in lock) return 'busy'
  try {
    for (const left of (await readdir(builds)).filter((name) => name.startsWith(WORK)))
      await rm(join(builds, left), { recursive: true, force: true })
    if (existsSync(target)) return 'there'
    const work = await mkdtemp(join(builds, WORK))
    try {
      await compile(work, settings, join(work, 'done', 'runsc'))
      await rm(home, { recursive: true, force: true })
      await rename(join(work, 'done'), home)
      return 'built'
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  } finally {
    await lock.release()
  }
}

async function compile(work: string, settings: BuildSettings, output: string): Promise<void> {
  await refuseShortage(work)
  const { program, environment } = await provideGo(work, settings)
  const go = (args: string[], cwd: string) => step(program, args, { cwd, env: environment })
  const pin = join(work, 'pin')
  await mkdir(pin)
  for (const file of ['go.mod', 'go.sum']) await cp(join(HERE, file), join(pin, file))
  const { Dir: sources } = JSON.parse(await go(['mod', 'download', '-json', GVISOR], pin)) as { Dir: string }

  const tree = join(work, 'tree')
  await cp(sources, tree, { recursive: true })
  for (const patch of await patches())
    await step('/bin/busybox', ['patch', '-p1', '-i', patch], { cwd: tree })
  const stamp = `-s -w -X ${GVISOR}/runsc/version.version=${BUILT_VERSION}`
  await go(['build', '-trimpath', '-buildvcs=false', '-ldflags', stamp, '-o', output, './runsc'], tree)
}

/**
 * In their order. `frozen-stubs`: a freeze kills no command. `live-connections`: a restored machine keeps its connections at its
 * next save too. `restored-connections`: they send again what was not acknowledged, and closed ones hold no port for long.
 * `whole-writes`: what a program writes at once arrives whole.
 */
async function patches(): Promise<string[]> {
  return (await readdir(HERE))
    .filter((name) => name.endsWith('.patch'))
    .toSorted()
    .map((name) => join(HERE, name))
}

async function refuseShortage(work: string): Promise<void> {
  const { bavail, bsize } = await statfs(work)
  if (bavail * bsize < NEEDED_BYTES)
    throw new Error('building runsc takes 2 GB of disk for a while: free some space below /usr/local/lib')
}
