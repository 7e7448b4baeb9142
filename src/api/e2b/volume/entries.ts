// What is at a path of a volume, as clients are shown it.

import { posix } from 'node:path'
import type { DirectoryList, FileFacts } from '../../../contract/files.ts'
import { pathInVolume } from './paths.ts'

const types = { file: 'file', directory: 'directory', link: 'symlink', other: 'unknown' } as const

type Facts = Omit<FileFacts, 'target' | 'path' | 'pathEncoding' | 'owner' | 'group'>

/** A unit tells the time of the last change alone. */
export function toEntry(path: string, facts: Facts, target: string | null): object {
  const { type, mode, bytes, modifiedAt, uid, gid } = facts
  return {
    name: path === '/' ? '/' : posix.basename(path),
    path,
    type: types[type],
    size: bytes,
    mode: Number.parseInt(mode, 8),
    uid,
    gid,
    atime: modifiedAt,
    mtime: modifiedAt,
    ctime: modifiedAt,
    ...(target !== null && { target }),
  }
}

/** A name that is no text has no place in JSON. */
export function entriesIn(folder: string, entries: DirectoryList['entries']): object[] {
  return entries.flatMap((entry) =>
    entry.encoding === undefined ? [toEntry(pathInVolume(posix.join(folder, entry.name)), entry, null)] : [],
  )
}
