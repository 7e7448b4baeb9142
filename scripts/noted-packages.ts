// The packages that Berth runs with: those of the lock file that are no tools of development and can be installed on Linux.

export type Package = { path: string; name: string; version: string; licence: string }

type Entry = {
  version?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  /** A package of this repository. */
  link?: boolean
}

/** The processors that the set-up knows. */
const processors = ['x64', 'arm64']

/** In the order of their names. */
export function notedPackages(lockfile: string): Package[] {
  const { packages } = JSON.parse(lockfile) as { packages: Record<string, Entry> }
  return Object.entries(packages)
    .filter(([path, { link }]) => path.startsWith('node_modules/') && !link)
    .filter(([, entry]) => !entry.dev && !entry.devOptional && runsHere(entry))
    .map(([path, { version = '', license = 'unknown' }]) => ({
      path,
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      licence: license,
    }))
    .toSorted((a, b) => a.path.localeCompare(b.path, 'en'))
}

function runsHere({ os, cpu }: Entry): boolean {
  return (
    (os === undefined || [os].flat().includes('linux')) &&
    (cpu === undefined || [cpu].flat().some((each) => processors.includes(each)))
  )
}
