// The packages that this Berth gives to its users, as scripts/build-packages.ts has built them. Their files stay open
// once they are read, so that an upgrade of the checkout does not mix two builds.

import { type FileHandle, open, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'

const builtPackages = fileURLToPath(new URL('../../../dist/packages', import.meta.url))

const manifestShape = z.object({
  version: z.string().regex(/^[\w.+-]+$/),
  wheel: z.string(),
  executable: z.string().nullable(),
  files: z.record(
    z.string().regex(/^[\w.-]+$/),
    z.object({ bytes: z.int(), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
})

export type PackageFile = { name: string; bytes: number; sha256: string; handle: FileHandle }

export type Packages = {
  /** Of this Berth, and of everything that is in here. */
  version: string
  wheel: PackageFile
  cli: PackageFile
  /** The CLI as a program; null where none could be built. */
  executable: PackageFile | null
  files: ReadonlyMap<string, PackageFile>
}

/** Returns null where none are built. */
export async function openPackages(directory = builtPackages): Promise<Packages | null> {
  const text = await readFile(`${directory}/manifest.json`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  const { version, wheel, executable, files: listed } = manifestShape.parse(JSON.parse(text))
  const opened = Object.entries(listed).map(async ([name, facts]) => {
    return [name, { name, ...facts, handle: await open(`${directory}/${name}`) }] as const
  })
  const files = new Map(await Promise.all(opened))
  const fileOf = (name: string): PackageFile => {
    const file = files.get(name)
    if (file === undefined) throw new Error(`The packages lack ${name}: npm run build:packages makes them`)
    return file
  }
  return {
    version,
    wheel: fileOf(wheel),
    cli: fileOf('berth-cli.tgz'),
    executable: executable === null ? null : fileOf(executable),
    files,
  }
}
