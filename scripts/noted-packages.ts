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
  optional?: boolean
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  /** A package of this repository. */
  link?: boolean
  /** It came within another package, which has its licence. */
  inBundle?: boolean
}

/** The processors that the set-up knows. */
const processors = ['x64', 'arm64']

/** In the order of their names. */
export function notedPackages(lockfile: string): Package[] {
  const { packages } = JSON.parse(lockfile) as { packages: Record<string, Entry> }
  const needed = neededNames(packages)
  return Object.entries(packages)
    .filter(([path, { link, inBundle }]) => path.startsWith('node_modules/') && !link && !inBundle)
    .filter(([, entry]) => !entry.dev && !entry.devOptional && runsHere(entry))
    .filter(([path]) => ownersOf(path).every((owner) => runsHere(packages[owner] ?? {})))
    .filter(([path, { optional }]) => !optional || needed.has(nameOf(path)))
    .map(([path, { version = '', license = 'unknown' }]) => ({
      path,
      name: nameOf(path),
      version,
      licence: license,
    }))
    .toSorted((a, b) => a.path.localeCompare(b.path, 'en'))
}

/** Names of what is installed here: what only a package for another processor needs is not. */
function neededNames(packages: Record<string, Entry>): Set<string> {
  const byName = Map.groupBy(Object.entries(packages), ([path]) => nameOf(path))
  const needed = new Set<string>()
  const visit = (path: string, entry: Entry) => {
    if (!runsHere(entry) || !ownersOf(path).every((owner) => runsHere(packages[owner] ?? {}))) return
    for (const name of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      if (needed.has(name)) continue
      needed.add(name)
      for (const [at, each] of byName.get(name) ?? []) visit(at, each)
    }
  }
  for (const [path, entry] of Object.entries(packages))
    if (!path.includes('node_modules/')) visit(path, entry)
  return needed
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** The packages that this one is installed within. */
function ownersOf(path: string): string[] {
  const parts = path.split('/node_modules/')
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('/node_modules/'))
}

function runsHere({ os, cpu }: Entry): boolean {
  return (
    (os === undefined || [os].flat().includes('linux')) &&
    (cpu === undefined || [cpu].flat().some((each) => processors.includes(each)))
  )
}
