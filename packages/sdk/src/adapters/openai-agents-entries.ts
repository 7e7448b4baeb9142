// Entries of a manifest, put into a unit.

import {
  type Entry,
  type GitRepo,
  permissionsForSandboxEntry,
  SandboxUnsupportedFeatureError,
} from '@openai/agents/sandbox'
import type { Unit } from '../unit.ts'
import { readLocal } from './local-files.ts'
import { absolutePath } from './paths.ts'

/**
 * Puts an entry at an absolute path of the unit.
 *
 * @param user Whose it is to be. Default: root's.
 * @throws SandboxUnsupportedFeatureError for an entry that units do not have, such as a mount.
 */
export async function putEntry(
  unit: Unit,
  path: string,
  entry: Entry,
  user: string | undefined,
): Promise<void> {
  const mode =
    entry.permissions === undefined ? undefined : permissionsForSandboxEntry(entry.permissions).toMode()
  switch (entry.type) {
    case 'dir':
      await unit.files.makeDirectory(path, { user, ...(mode === undefined ? {} : { mode: mode & 0o7777 }) })
      for (const [name, child] of Object.entries(entry.children ?? {}))
        await putEntry(unit, absolutePath(name, path), child, user)
      return
    case 'file': {
      const { content } = entry
      const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
      await unit.files.writeStream(path, bytes, {
        user,
        mode: mode === undefined ? undefined : mode & 0o7777,
      })
      return
    }
    case 'local_file':
    case 'local_dir':
      for (const { name, bytes, mode: own } of await readLocal(entry.src, entry.type === 'local_dir'))
        await unit.files.writeStream(absolutePath(name, path), bytes, { user, mode: own })
      if (entry.type === 'local_dir') await unit.files.makeDirectory(path, { user })
      return
    case 'git_repo':
      await clone(unit, path, entry, user)
      return
    default:
      throw new SandboxUnsupportedFeatureError(`A unit has no entries of the type ${entry.type}.`)
  }
}

async function clone(
  unit: Unit,
  path: string,
  { host = 'github.com', repo, ref, subpath }: GitRepo,
  user: string | undefined,
): Promise<void> {
  const from = repo.includes('://') ? repo : `https://${host}/${repo}.git`
  const script = `set -e
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git -C "$scratch" init -q
git -C "$scratch" fetch -q --depth 1 -- "$1" "$2"
git -C "$scratch" checkout -q FETCH_HEAD
mkdir -p -- "$4"
cp -a -- "$scratch/$3/." "$4/"`
  await unit.exec(['sh', '-c', script, 'clone', from, ref ?? 'HEAD', subpath ?? '.', path], {
    user,
    check: true,
    timeoutMs: 600_000,
  })
}
