// The Go that compiles: the machine's own if it is new enough, else the pinned one from the module proxy, as Go itself would
// fetch it, for this build alone.

import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { chmod, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { run, SAFE_PATH } from '../../../lib/process.ts'
import { isOlder } from '../../../lib/versions.ts'
import { GO, goArchives } from './pinned.ts'
import { step } from './step.ts'

const DOWNLOAD_TIMEOUT_MS = 10 * 60_000
const DEFAULT_PROXY = 'https://proxy.golang.org'
/** Where Go is installed by its own archive, and by Debian. */
const places = ['/usr/local/go/bin/go', '/usr/bin/go', '/usr/lib/go/bin/go']

/** The operator's: of Go, of proxies and of their certificates, by the names that they have in an environment. */
export type BuildSettings = Record<string, string>

export type Go = { program: string; environment: Record<string, string> }

/** `work`: a directory for all that it downloads and compiles. */
export async function provideGo(work: string, settings: BuildSettings): Promise<Go> {
  const program = (await ownGo()) ?? (await fetchGo(work, settings))
  return { program, environment: environmentIn(work, settings) }
}

async function ownGo(): Promise<string | null> {
  for (const program of ['go', ...places]) {
    const said = await run(program, ['version'], { timeoutMs: 10_000 }).catch(() => null)
    const version = /go version go(\d+(?:\.\d+)*)/.exec(said?.stdout ?? '')?.[1]
    if (version !== undefined && !isOlder(version, GO)) return program
  }
  return null
}

async function fetchGo(work: string, settings: BuildSettings): Promise<string> {
  const archive = goArchives[process.arch]
  if (archive === undefined) throw new Error(`There is no pinned Go for the processor ${process.arch}`)
  const { arch, sha256 } = archive
  const name = `v0.0.1-go${GO}.linux-${arch}`
  const zip = join(work, 'go.zip')
  await download(`${proxyOf(settings)}/golang.org/toolchain/@v/${name}.zip`, zip)
  if ((await digestOf(zip)) !== sha256)
    throw new Error(`The Go of the module proxy is not the pinned one: ${name}`)
  await step('/bin/busybox', ['unzip', '-q', zip], { cwd: work })
  const root = join(work, `golang.org/toolchain@${name}`)
  // An archive of a module has no permissions.
  for (const directory of ['bin', `pkg/tool/linux_${arch}`])
    for (const file of await readdir(join(root, directory)).catch(() => []))
      await chmod(join(root, directory, file), 0o755)
  return join(root, 'bin/go')
}

/** The first proxy that GOPROXY names. */
export function proxyOf({ GOPROXY = '' }: Record<string, string>): string {
  const named = GOPROXY.split(/[,|]/).find((one) => /^https?:/.test(one))
  return (named ?? DEFAULT_PROXY).replace(/\/$/, '')
}

async function download(url: string, path: string): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) }).catch(
    (error: unknown) => {
      throw new Error(`${new URL(url).host} cannot be reached`, { cause: error })
    },
  )
  if (!answer.ok || answer.body === null) throw new Error(`${url} answered ${answer.status}`)
  await pipeline(Readable.fromWeb(answer.body), createWriteStream(path))
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** The operator's settings of Go count, but for those that would change what is built. */
function environmentIn(work: string, settings: BuildSettings): Record<string, string> {
  return {
    HOME: work,
    ...settings,
    PATH: SAFE_PATH,
    GOPATH: join(work, 'path'),
    GOMODCACHE: join(work, 'modules'),
    GOCACHE: join(work, 'cache'),
    GOTMPDIR: work,
    GOFLAGS: '-modcacherw',
    GOWORK: 'off',
    GOTOOLCHAIN: 'local',
    // With cgo it starts nothing: "cannot read client sync file".
    CGO_ENABLED: '0',
  }
}
