// Builds a built-in image from Debian packages, with the host's own apt settings.

import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { killProcessGroup, run, SAFE_PATH } from '../../../lib/process.ts'
import type { Image } from '../../engine.ts'
import { type BuiltIn, builtInConfig, entrypointPath, readScript } from './builtin.ts'
import type { ImageCaps } from './caps.ts'
import { imageError } from './failures.ts'
import { runJailed } from './jail.ts'
import type { Workshop } from './store.ts'

export type BuildOptions = {
  onProgress: (line: string) => void
  caps: ImageCaps
  signal: AbortSignal
}

const SUITE = 'bookworm'
const DEBIAN = 'http://deb.debian.org/debian'
const SECURITY = 'http://security.debian.org/debian-security'

/** Documentation is most of the files of a small system. Licences stay. */
const dpkgOptions = [
  'path-exclude=/usr/share/doc/*',
  'path-include=/usr/share/doc/*/copyright',
  'path-exclude=/usr/share/man/*.gz',
  'path-exclude=/usr/share/info/*',
  'path-exclude=/usr/share/locale/*',
  'path-exclude=/usr/share/lintian/*',
]

const ofThisHost = [
  '/etc/apt/apt.conf.d/99mmdebstrap',
  '/etc/hostname',
  '/etc/machine-id',
  '/etc/resolv.conf',
]

export async function buildImage(
  definition: BuiltIn,
  { rootfs, scratch }: Workshop,
  options: BuildOptions,
): Promise<Omit<Image, 'digest'>> {
  const reference = `berth.local/${definition.name}:${definition.version}`
  options.onProgress(`${reference}: building from Debian packages, once`)
  await mkdir(scratch, { mode: 0o700 })
  const command = buildCommand(definition, rootfs, await hostSources(), await hostAptOptions())
  const failure = await runBuild(command, reference, options)
  if (failure !== null) throw imageError('image_unavailable', reference, 'building it failed', failure)
  await finish(definition, rootfs, options)
  options.onProgress(`${reference}: ready`)
  return { reference, config: builtInConfig(definition) }
}

/** Within a pid namespace that ends with us: package scripts may leave processes behind. */
function buildCommand(
  definition: BuiltIn,
  rootfs: string,
  sources: string[],
  aptOptions: string[],
): string[] {
  // biome-ignore format: one line a program
  return [
    'setpriv', '--pdeathsig', 'KILL', '--',
    'unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--',
    'mmdebstrap', '--mode=root', '--format=directory', '--variant=minbase',
    `--include=${['dumb-init', ...definition.packages].join(',')}`,
    ...dpkgOptions.map((option) => `--dpkgopt=${option}`),
    ...aptOptions.map((option) => `--aptopt=${option}`),
    ...(definition.prepare ? [`--customize-hook=chroot "$1" sh -c '${definition.prepare}'`] : []),
    SUITE,
    rootfs,
    ...sources,
  ]
}

/** Null when it worked; otherwise what the operator should read. */
async function runBuild(
  [command = '', ...args]: string[],
  reference: string,
  { onProgress, caps, signal }: BuildOptions,
): Promise<Error | null> {
  signal.throwIfAborted()
  const child = spawn(command, args, {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: SAFE_PATH, LC_ALL: 'C.UTF-8', DEBIAN_FRONTEND: 'noninteractive' },
  })
  const lastLines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    lastLines.push(line.slice(0, 500))
    if (lastLines.length > 20) lastLines.shift()
    if (line.startsWith('I: ')) onProgress(`${reference}: ${line.slice(3)}`)
  })
  const stop = () => {
    if (child.pid !== undefined) killProcessGroup(child.pid)
  }
  const timer = setTimeout(stop, caps.buildMs)
  signal.addEventListener('abort', stop, { once: true })
  try {
    const code = await new Promise((resolve, reject) => child.once('close', resolve).once('error', reject))
    return code === 0 ? null : new Error(`mmdebstrap ended with ${String(code)}: ${lastLines.join('\n')}`)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** The tree holds Debian's files alone so far, so paths in it lead where they say. */
async function finish(definition: BuiltIn, rootfs: string, { caps, signal }: BuildOptions): Promise<void> {
  const script = await readScript(definition)
  if (script !== null) await writeFile(join(rootfs, entrypointPath), script, { mode: 0o755 })
  // What this host needed to reach Debian's servers means nothing in a unit, and neither do its names.
  await writeFile(join(rootfs, 'etc/apt/sources.list'), debianSources(DEBIAN, SECURITY).join('\n') + '\n')
  const jail = {
    program: 'clean' as const,
    args: [...ofThisHost, ...(definition.remove ?? [])],
    readOnly: {},
    writable: { '/image': join(rootfs, '..') },
    account: null,
    maxFileBytes: caps.unpackedBytes,
  }
  const cleaned = await runJailed(jail, { timeoutMs: caps.unpackMs, maxOutputBytes: 64 * 1024, signal })
  if (cleaned.exitCode !== 0) throw new Error(`cleaning a built image failed: ${cleaned.stderr.slice(-2000)}`)
}

function debianSources(debian: string, security: string): string[] {
  return [
    `deb ${debian} ${SUITE} main`,
    `deb ${debian} ${SUITE}-updates main`,
    `deb ${security} ${SUITE}-security main`,
  ]
}

/** Where this host gets Debian's packages from, else Debian's own servers. */
async function hostSources(): Promise<string[]> {
  const targets = await run(
    'apt-get',
    ['indextargets', '--format', '$(LABEL) $(REPO_URI)', 'Created-By: Packages'],
    { timeoutMs: 30_000 },
  )
  const uriOf = (label: string) =>
    targets.stdout
      .split('\n')
      .find((line) => line.startsWith(`${label} http`))
      ?.slice(label.length + 1)
  return debianSources(uriOf('Debian') ?? DEBIAN, uriOf('Debian-Security') ?? SECURITY)
}

/** Proxies, and whether dates are checked: an apt that works here must work in the build. */
async function hostAptOptions(): Promise<string[]> {
  const dump = await run('apt-config', ['dump', 'Acquire'], { timeoutMs: 30_000 })
  return dump.stdout
    .split('\n')
    .filter((line) => /^Acquire::(?:https?::|Check-Valid-Until |Check-Date |Retries )/.test(line))
}
