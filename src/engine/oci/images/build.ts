// Builds a built-in image from Debian packages, with the host's apt settings. The same definition and packages give
// the same files with the same times, except for what `prepare` creates, which has random identities, and the order in
// apt's note of what came along.

import { spawn } from 'node:child_process'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { killProcessGroup, SAFE_PATH } from '../../../lib/process.ts'
import { writeInTree } from '../kernel/unit-tree.ts'
import {
  type BuiltIn,
  builtInConfig,
  definitionDigest,
  entrypointPath,
  type NpmSource,
  npmSourcesOf,
  readFiles,
  readScript,
  referenceOf,
  sourceOf,
} from './builtin.ts'
import type { ImageLimits } from './image-limits.ts'
import { hostAptOptions, hostSources, publicSources, SUITE } from './debian.ts'
import { buildLogLine } from './build-log.ts'
import { imageError } from './failures.ts'
import { runJailed } from './jail.ts'
import { buildDigest, readPackages } from './packages.ts'
import type { NewImage, BuildDirectory } from './store.ts'

export type BuildOptions = {
  /** The root of the plain system, where it is a part of the image: the rest is installed on a copy of it. */
  plainSystem?: string | null
  onProgress: (line: string) => void
  /** Called with each line that callers may read (build-log.ts). */
  onLine?: (line: string) => void
  limits: ImageLimits
  /** No caller waits for it: it yields to everything else on this host. */
  background: boolean
  signal: AbortSignal
}

/** Makes an image in a workshop, as `buildImage` does. */
export type Builder = (
  definition: BuiltIn,
  workshop: BuildDirectory,
  options: BuildOptions,
) => Promise<NewImage>

/** Documentation is most of the files of a small system. Licences stay. The whole image is flushed at its end. */
const dpkgOptions = [
  'force-unsafe-io',
  'path-exclude=/usr/share/doc/*',
  'path-include=/usr/share/doc/*/copyright',
  'path-exclude=/usr/share/man/*.gz',
  'path-exclude=/usr/share/info/*',
  'path-exclude=/usr/share/locale/*',
  'path-exclude=/usr/share/lintian/*',
]

/** Files of this host, or of the time of the build. */
const leftBehind = [
  '/etc/apt/apt.conf.d/99mmdebstrap',
  '/etc/group-',
  '/etc/gshadow-',
  '/etc/hostname',
  '/etc/machine-id',
  '/etc/passwd-',
  '/etc/resolv.conf',
  '/etc/shadow-',
  '/etc/subgid-',
  '/etc/subuid-',
  '/var/cache/debconf/config.dat-old',
  '/var/cache/debconf/templates.dat-old',
  '/var/cache/ldconfig/aux-cache',
  '/var/lib/dpkg/diversions-old',
  '/var/lib/dpkg/status-old',
  '/var/log/alternatives.log',
  '/var/log/apt/eipp.log.xz',
  '/var/log/apt/history.log',
  '/var/log/apt/term.log',
  '/var/log/bootstrap.log',
  '/var/log/dpkg.log',
]

/**
 * Programs open this one file for their language's rules, instead of a dozen in the directory
 * (decisions/builtin-images.md).
 */
const PACK_LOCALE =
  'rm -f "$1"/usr/lib/locale/locale-archive && chroot "$1" localedef --add-to-archive /usr/lib/locale/C.utf8'

const EMPTY_RUN = 'find "$1"/run -mindepth 1 ! -path "$1"/run/lock -delete'

/** In place of the essential packages. This host's sources stay. */
const COPY_SYSTEM =
  'sources=$(cat "$1"/etc/apt/sources.list) && cp --archive --reflink=auto "$BERTH_SYSTEM"/. "$1" && ' +
  'printf "%s\\n" "$sources" >"$1"/etc/apt/sources.list'
/** Debian may have newer packages than the system was made of. By its own apt, which notes what came along. */
const installed = (packages: string) =>
  `chroot "$1" apt-get --yes dist-upgrade && chroot "$1" apt-get --yes install ${packages}`

/** The release of this Debian: the date of every file that the build itself made. */
const RELEASED = Date.UTC(2023, 5, 10)

export async function buildImage(
  definition: BuiltIn,
  { rootfs, scratch }: BuildDirectory,
  options: BuildOptions,
): Promise<NewImage> {
  const reference = referenceOf(definition)
  options.onProgress(`${reference}: building from Debian packages, once`)
  await mkdir(scratch, { mode: 0o700 })
  // By the clock that file times come from.
  const { mtimeMs: begunMs } = await stat(scratch)
  const [sources, aptOptions] = await Promise.all([hostSources(), hostAptOptions()])
  const { background, plainSystem = null } = options
  const npm = await npmSourcesOf(definition)
  const command = buildCommand(definition, rootfs, { plainSystem, sources, aptOptions, background, npm })
  const releases = join(scratch, 'releases')
  const failure = await runBuild(command, { reference, releases, temporary: scratch, npm }, options)
  if (failure !== null) throw imageError('image_unavailable', reference, 'building it failed', failure)
  const archiveAt = newestDate(await readFile(releases, 'utf8').catch(() => ''))
  await finish(definition, rootfs, begunMs, options)
  const id = await definitionDigest(definition)
  options.onProgress(`${reference}: ready`)
  return {
    reference,
    digest: buildDigest(id, readPackages(rootfs)),
    config: builtInConfig(definition),
    build: { definition: id, archiveAt, volumeData: definition.volumeData },
  }
}

/** Returns the newest of lines such as `Date: Sat, 21 Nov 2026 08:04:11 UTC`. */
function newestDate(lines: string): string | null {
  const dates = lines.split('\n').map((line) => Date.parse(line.replace(/^Date: /, '')))
  const newest = Math.max(...dates.filter((ms) => !Number.isNaN(ms)))
  return Number.isFinite(newest) ? new Date(newest).toISOString() : null
}

/** In a pid namespace that ends with us, since package scripts may leave processes behind. */
function buildCommand(
  definition: BuiltIn,
  rootfs: string,
  {
    plainSystem,
    sources,
    aptOptions,
    background,
    npm,
  }: {
    plainSystem: string | null
    sources: string[]
    aptOptions: string[]
    background: boolean
    npm: NpmSource[]
  },
): string[] {
  const packages = ['dumb-init', ...definition.packages]
  // biome-ignore format: one line a program
  return [
    ...(background ? ['nice', '-n', '19', 'ionice', '-c', '3'] : []),
    'setpriv', '--pdeathsig', 'KILL', '--',
    'unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--',
    'mmdebstrap', '--verbose', '--mode=root', '--format=directory',
    ...(plainSystem === null
      ? ['--variant=minbase', `--include=${packages.join(',')}`]
      : ['--variant=custom', `--setup-hook=${COPY_SYSTEM}`, `--customize-hook=${installed(packages.join(' '))}`]),
    ...dpkgOptions.map((option) => `--dpkgopt=${option}`),
    ...aptOptions.map((option) => `--aptopt=${option}`),
    `--customize-hook=grep -h '^Date: ' "$1"/var/lib/apt/lists/*Release >"$BERTH_RELEASES" || true`,
    `--customize-hook=${PACK_LOCALE}`,
    // It is emptied before `prepare` instead of afterwards.
    ...(definition.keepsRun ? ['--skip=cleanup/run', `--customize-hook=${EMPTY_RUN}`] : []),
    ...uploads(definition),
    ...copies(npm),
    ...(definition.prepare ? [`--customize-hook=chroot "$1" sh -c '${definition.prepare}'`] : []),
    SUITE,
    rootfs,
    ...sources,
  ]
}

/** What `prepare` may need is there before it. */
function uploads({ files = {} }: BuiltIn): string[] {
  return Object.entries(files).flatMap(([path, name]) => [
    `--customize-hook=mkdir -p "$1${dirname(path)}"`,
    `--customize-hook=upload ${fileURLToPath(sourceOf(name))} ${path}`,
  ])
}

/** Their paths are given by variables, since a shell runs the hook. */
function copies(npm: NpmSource[]): string[] {
  return npm.map(
    ({ to }, index) =>
      `--customize-hook=mkdir -p "$1${dirname(to)}" && cp -R --no-preserve=ownership "$BERTH_NPM_${index}" "$1${to}" && chmod -R a+rX,go-w "$1${to}"`,
  )
}

/** Returns null if it worked; otherwise what the operator should read. */
async function runBuild(
  [command = '', ...args]: string[],
  {
    reference,
    releases,
    temporary,
    npm,
  }: { reference: string; releases: string; temporary: string; npm: NpmSource[] },
  { plainSystem = null, onProgress, onLine, limits, signal }: BuildOptions,
): Promise<Error | null> {
  signal.throwIfAborted()
  const child = spawn(command, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: SAFE_PATH,
      LC_ALL: 'C.UTF-8',
      DEBIAN_FRONTEND: 'noninteractive',
      // Programs that write dates into files use this one.
      SOURCE_DATE_EPOCH: String(RELEASED / 1000),
      BERTH_RELEASES: releases,
      ...(plainSystem === null ? {} : { BERTH_SYSTEM: plainSystem }),
      ...Object.fromEntries(npm.map(({ from }, index) => [`BERTH_NPM_${index}`, from])),
      // A build that is ended leaves a directory of gpg there. mmdebstrap takes the variable away from hooks and packages.
      TMPDIR: temporary,
    },
  })
  const lastLines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLines.push(line.slice(0, 500))
    if (lastLines.length > 20) lastLines.shift()
    const told = onLine && buildLogLine(line)
    if (told) onLine(told)
    if (line.startsWith('I: ') && !line.includes('-hook')) onProgress(`${reference}: ${line.slice(3)}`)
  })
  const stop = () => {
    if (child.pid !== undefined) killProcessGroup(child.pid)
  }
  const timer = setTimeout(stop, limits.buildMs)
  signal.addEventListener('abort', stop, { once: true })
  try {
    const code = await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject))
    return code === 0 ? null : new Error(`mmdebstrap ended with ${String(code)}: ${lastLines.join('\n')}`)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

async function finish(
  definition: BuiltIn,
  rootfs: string,
  begunMs: number,
  { limits, signal }: BuildOptions,
): Promise<void> {
  const script = await readScript(definition)
  if (script !== null) await writeInTree(rootfs, entrypointPath, script, 0o755)
  for (const [path, content] of await readFiles(definition)) await writeInTree(rootfs, path, content, 0o755)
  // The host's proxies and mirrors are useless in a unit, and so are their names.
  await writeInTree(rootfs, '/etc/apt/sources.list', publicSources.join('\n') + '\n')
  const task = {
    remove: [...leftBehind, ...(definition.remove ?? [])],
    settle: { sinceMs: begunMs, toMs: RELEASED },
  }
  const jail = {
    program: 'clean' as const,
    args: [JSON.stringify(task)],
    readOnly: {},
    writable: { '/image': dirname(rootfs) },
    account: null,
    maxFileBytes: limits.unpackedBytes,
    maxCpuS: limits.unpackCpuS,
  }
  const cleaned = await runJailed(jail, { timeoutMs: limits.unpackMs, maxOutputBytes: 64 * 1024, signal })
  if (cleaned.exitCode !== 0) throw new Error(`cleaning a built image failed: ${cleaned.stderr.slice(-2000)}`)
}
