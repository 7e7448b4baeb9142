// Files of a running machine: the part of the engine (engine.ts) that is about them.

import type { MachineRef } from './machine-ref.ts'

/** `bytes` of a file's content. What is not UTF-8 in a name is as in lib/byte-text.ts, and so it is in a path. */
export type EntryFacts = {
  type: 'file' | 'directory' | 'link' | 'other'
  mode: number
  bytes: number
  modifiedAt: Date
  uid: number
  gid: number
  /** Null where the machine's `/etc/passwd` or `/etc/group` has no name for the number. */
  owner: string | null
  group: string | null
}
/** `name`: of an entry further below the listed directory, its path from there. */
export type DirectoryEntry = EntryFacts & { name: string }
/** `target`: where a link leads, as it is written in it; null for what is no link. */
export type FileFacts = EntryFacts & { target: string | null }

/** For whom something is written: a name or a uid of the machine's `/etc/passwd`. */
export type FileOwner = { mode?: number | undefined; user?: string | undefined }
/** By name. `truncated`: there are more than could be listed. */
export type Directory = { entries: DirectoryEntry[]; truncated: boolean }

export type WrittenFile = { bytes: number; sha256: string; verified: boolean }

/** `mode`: its permission bits, with those for setuid, setgid and sticky. */
export type ReadFile = { content: Buffer; mode: number }

export const changeTypes = ['create', 'write', 'remove', 'rename', 'chmod'] as const

/**
 * `path`: from the watched directory; empty for the directory itself. `rename`: it was moved away from there, and if it is
 * still below the directory, a `create` tells where to. `overflow`: some changes were lost, because there were too many at
 * once, or more directories than can be watched.
 */
export type FileChange =
  | { type: (typeof changeTypes)[number]; path: string; isDirectory: boolean }
  | { type: 'overflow'; lost: 'changes' | 'directories' }

export type OnChanges = {
  /** It watches from now on. */
  onBegun: () => void
  /** In their order. It is awaited, and meanwhile changes wait in the machine's kernel, as many as it keeps. */
  onChanges: (changes: FileChange[]) => void | Promise<void>
}

export interface FileOperations {
  /**
   * Writes a file in a running machine: temporary name, fsync, rename; then hashes what the machine reads back. An
   * existing file keeps its owner, unless a `user` is named, and without `mode` its mode. Throws `unknown_user`.
   */
  writeFile(ref: MachineRef, path: string, content: Buffer, owner?: FileOwner): Promise<WrittenFile>
  /**
   * The same of content that comes piece by piece, up to `limits.streamedFileBytes`. If the pieces break off, nothing is
   * written. Rejects if reading them fails.
   */
  receiveFile(
    ref: MachineRef,
    path: string,
    pieces: AsyncIterable<Buffer>,
    owner: FileOwner,
    signal: AbortSignal,
  ): Promise<WrittenFile>

  /** Throws EngineError `file_not_found`, `not_a_file` or `file_too_large` (over `maxBytes`). `user`: as whom, as in all reads here; absent: as root. Throws
   * `unknown_user`, and `file_refused` where that user may not. */
  readFile(ref: MachineRef, path: string, maxBytes: number, user?: string): Promise<ReadFile>

  /**
   * Sends a file of any size piece by piece; `onMode` comes before them. `onData` is awaited. Throws as `readFile`; aborting
   * ends it.
   */
  sendFile(
    ref: MachineRef,
    path: string,
    onMode: (mode: number) => void,
    onData: (data: Buffer) => void | Promise<void>,
    signal: AbortSignal,
    user?: string,
  ): Promise<void>

  /** Looks at what is at a path of a running machine; a link is not followed. Throws `file_not_found`. */
  statFile(ref: MachineRef, path: string, user?: string): Promise<FileFacts>

  /**
   * Makes a directory of a running machine, with those above it. Returns whether it was not there before. Throws
   * `not_a_directory` where something else is in the way, `unknown_user`.
   */
  makeDirectory(ref: MachineRef, path: string, owner: FileOwner): Promise<boolean>

  /**
   * Moves a file, link or directory of a running machine, as `mv -T` would: it replaces a file, and makes the
   * directories above its new place. Throws `file_not_found`, `not_a_file` where a directory is in the way.
   */
  moveFile(ref: MachineRef, from: string, to: string, user?: string): Promise<void>

  /**
   * Returns the entries of a directory of a running machine, and of those below it down to `depth`, at most
   * `limits.directoryEntries`. Throws `file_not_found`, `not_a_directory`.
   */
  listDirectory(ref: MachineRef, path: string, depth?: number, user?: string): Promise<Directory>
  /**
   * Removes a file, link or directory of a running machine; a link's target stays. A directory with content only with
   * `recursive`, else `directory_not_empty`. Throws `file_not_found`, `file_refused`, and `timeout`, after which a part of it is removed.
   */
  removeFile(ref: MachineRef, path: string, recursive: boolean): Promise<void>

  /**
   * A directory of a running machine, or one file, in the format of tar; names begin with `./`. `onData` is awaited; it
   * may have got a part of it before this throws `file_not_found`, `not_a_file` (a device, or what the kernel shows),
   * `file_too_large` (over `limits.archiveBytes`), `file_refused` or `timeout`. Aborting ends it. What is in it is the
   * machine's word alone.
   */
  readArchive(
    ref: MachineRef,
    path: string,
    onData: (data: Buffer) => void | Promise<void>,
    signal: AbortSignal,
    user?: string,
  ): Promise<void>
  /**
   * Unpacks an archive in the format of tar into a directory of a running machine, which is created if it is missing. No
   * entry leads out of the directory; files belong to root. With `keep`, files that exist are written in place: they keep
   * their mode and owner, and links that exist are followed, also out of the directory. Throws `not_a_directory`, `not_an_archive`, `disk_full`,
   * `file_refused`, `timeout`: files that were unpacked before stay. Rejects if reading the pieces fails.
   */
  writeArchive(
    ref: MachineRef,
    path: string,
    pieces: AsyncIterable<Buffer>,
    signal: AbortSignal,
    keep?: boolean,
  ): Promise<void>

  /**
   * Tells what changes in a directory of a running machine, with `recursive` also below it, until the directory itself is
   * removed or moved away. It stands still while the machine is frozen. Throws `file_not_found`, `not_a_directory`,
   * `timeout` after `limits.watchMs`, and `not_running` once the run ends. Aborting ends it.
   */
  watchFiles(
    ref: MachineRef,
    path: string,
    recursive: boolean,
    told: OnChanges,
    signal: AbortSignal,
  ): Promise<void>
}
