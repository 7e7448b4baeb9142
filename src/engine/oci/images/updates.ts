// Asks Debian for newer packages than those of an image. Of the host's own apt only the sources are used: lists and
// settings are in a directory that is removed.

import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MINUTE } from '../../../lib/clock.ts'
import { SAFE_PATH } from '../../../lib/process.ts'
import { runOrThrow } from '../kernel/programs.ts'
import { hostAptOptions, hostSources } from './debian.ts'
import { removeTree } from './files.ts'
import { statusPathIn } from './packages.ts'

/** `has`: null for a new package that the newer ones need. */
export type Update = { name: string; has: string | null; offers: string }

/** Asks about several images at once; returns the updates of each. Throws if Debian cannot be reached. */
export type FindUpdates = (rootfses: string[], options: { signal: AbortSignal }) => Promise<Update[][]>

const FETCH_MS = 10 * MINUTE
const COMPARE_MS = 2 * MINUTE

/** `scratch` is removed before and after; only one call may use it at a time. */
export function updatesBy(scratch: string): FindUpdates {
  return async (rootfses, { signal }) => {
    await removeTree(scratch)
    try {
      const apt = await prepareApt(scratch)
      // The host's own may be closed to the user that apt checks signatures as.
      const temporary = join(scratch, 'tmp')
      await mkdir(temporary)
      await chmod(temporary, 0o1777)
      const env = { PATH: SAFE_PATH, LC_ALL: 'C', APT_CONFIG: apt, TMPDIR: temporary }
      const ask = async (args: string[], timeoutMs: number) =>
        await runOrThrow('nice', ['-n', '19', 'apt-get', ...args], { env, signal, timeoutMs })
      await ask(['--quiet', '--error-on=any', 'update'], FETCH_MS)
      const found: Update[][] = []
      for (const rootfs of rootfses) {
        const status = `Dir::State::status=${statusPathIn(rootfs)}`
        found.push(parseSimulation(await ask(['--simulate', '-o', status, 'dist-upgrade'], COMPARE_MS)))
      }
      return found
    } finally {
      await removeTree(scratch)
    }
  }
}

/** Parses lines such as `Inst libc6 [2.36-9] (2.36-10 Debian-Security:12 [amd64])`. */
export function parseSimulation(text: string): Update[] {
  return [...text.matchAll(/^Inst (\S+) (?:\[(\S+)\] )?\((\S+) /gm)].map(
    ([, name = '', has, offers = '']) => ({
      name,
      has: has ?? null,
      offers,
    }),
  )
}

/** Returns the path of its configuration. The user that apt fetches as must be able to enter its directories. */
async function prepareApt(scratch: string): Promise<string> {
  for (const directory of ['state/lists/partial', 'cache/archives/partial'])
    await mkdir(join(scratch, directory), { recursive: true })
  await chmod(scratch, 0o755)
  const path = (name: string) => join(scratch, name)
  const lines = [
    // Read first: the host's own would run the host's hooks after an update.
    'Dir::Etc::main "/dev/null";',
    'Dir::Etc::parts "/dev/null";',
    'Dir::Etc::preferences "/dev/null";',
    'Dir::Etc::preferencesparts "/dev/null";',
    'Dir::Etc::sourceparts "/dev/null";',
    `Dir::Etc::sourcelist "${path('sources.list')}";`,
    `Dir::State "${path('state')}";`,
    `Dir::State::status "${path('status')}";`,
    `Dir::Cache "${path('cache')}";`,
    'Dir::Cache::pkgcache "";',
    'Dir::Cache::srcpkgcache "";',
    'APT::Install-Recommends "false";',
    'Acquire::Languages "none";',
    // They are in memory.
    'Acquire::GzipIndexes "true";',
    ...(await hostAptOptions()),
  ]
  await writeFile(path('apt.conf'), lines.join('\n') + '\n')
  await writeFile(path('sources.list'), (await hostSources()).join('\n') + '\n')
  await writeFile(path('status'), '')
  return path('apt.conf')
}
