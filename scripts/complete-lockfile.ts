// Run this after `npm install` if the registry lacks packages for other platforms, as mirrors often do:
// npm then silently leaves them out of package-lock.json, and `npm ci` refuses that file everywhere.
// The script adds them again by name and version, marked for their platform, so that npm skips them on this one. It then
// adds the registry's digest to every entry without one; a mirror that lacks a package has no digest for it.

import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

type Package = {
  version?: string
  integrity?: string
  /** A package of this repository. */
  link?: boolean
  /** It comes within another package, whose digest counts. */
  inBundle?: boolean
  optional?: boolean
  dev?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

const systems = ['android', 'darwin', 'freebsd', 'linux', 'openbsd', 'openharmony', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'x64']

const path = new URL('../package-lock.json', import.meta.url)
const lockfile = JSON.parse(await readFile(path, 'utf8')) as { packages: Record<string, Package> }
const { packages } = lockfile

const added: string[] = []
for (const owner of Object.values(packages)) {
  for (const [name, version] of Object.entries(owner.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`
    if (packages[key]) continue
    packages[key] = { version, optional: true, ...(owner.dev ? { dev: true } : {}), ...platformOf(name) }
    added.push(name)
  }
}

const withoutDigest: string[] = []
for (const [key, entry] of Object.entries(packages)) {
  if (!key.startsWith('node_modules/') || entry.link || entry.inBundle) continue
  if (entry.integrity !== undefined) continue
  const name = key.slice(key.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const integrity = await integrityOf(`${name}@${entry.version}`)
  if (integrity === null) withoutDigest.push(name)
  else entry.integrity = integrity
}

const sorted = Object.fromEntries(Object.entries(packages).toSorted(([a], [b]) => (a < b ? -1 : 1)))
await writeFile(path, `${JSON.stringify({ ...lockfile, packages: sorted }, null, 2)}\n`)
console.log(added.length === 0 ? 'package-lock.json is complete' : `added ${added.join(', ')}`)
if (withoutDigest.length > 0) console.log(`this registry has no digest of ${withoutDigest.join(', ')}`)

/** Null: the registry does not have it. */
async function integrityOf(specifier: string): Promise<string | null> {
  const asked = run('npm', ['view', specifier, 'dist.integrity'], { timeout: 60_000 })
  const answer = await asked.catch(() => ({ stdout: '' }))
  return /^sha512-\S+$/m.exec(answer.stdout)?.[0] ?? null
}

/** Such packages carry their platform in their name: `@oxlint/binding-linux-x64-musl`. */
function platformOf(name: string): Package {
  const words = name.split(/[/-]/)
  const os = systems.filter((system) => words.includes(system))
  const cpu = processors.filter((processor) => words.includes(processor))
  if (os.length !== 1 || cpu.length !== 1)
    throw new Error(`${name} does not tell its platform: add it by hand`)
  const libc = words.some((word) => word.startsWith('musl')) ? { libc: ['musl'] } : {}
  return { os, cpu, ...libc }
}
