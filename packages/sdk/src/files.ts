// Files of a unit: up to 1 MB each by `read` and `write`, any size as a stream, directories of up to 2 GB as tar archives.

import { bytesOfBase64, textOf } from './command.ts'
import type {
  ArchiveWritten,
  DirectoryEntry,
  DirectoryList,
  DirectoryMade,
  FileDeleted,
  FileFacts,
  FileMoved,
  FileRead,
  FileWritten,
} from './contract.ts'
import { type List, type ListOptions, listOf } from './list.ts'
import type { CallOptions, Transport } from './transport.ts'
import type { Blob, ReadableStream } from './platform.ts'

/** `path`: from the watched directory, in base64 where it is not UTF-8. */
export type WatchedChange =
  | {
      event: 'create' | 'write' | 'remove' | 'rename' | 'chmod'
      path: string
      pathEncoding?: 'base64' | undefined
      isDirectory: boolean
    }
  | { event: 'ready'; path: '' }
  | { event: 'overflow'; path: ''; lost: 'changes' | 'directories' }

export type WriteOptions = {
  mode?: number | undefined
  /** Whose it is to be: a name or a number of the unit's `/etc/passwd`. */
  user?: string | undefined
}

export type ReadOptions = {
  /** As whom to read: a name or a number of the unit's `/etc/passwd`. Default: root. */
  user?: string | undefined
}

export type Files = {
  /**
   * Makes the directories on the way. Throws `validation` over 1 MB. Without `mode`, such as 0o755, a file that exists
   * keeps its own.
   */
  write: (
    path: string,
    content: string | Uint8Array | Blob,
    options?: CallOptions & WriteOptions,
  ) => Promise<FileWritten>
  /** Throws `not_found` where there is none, `validation` over 1 MB. */
  read: (path: string, options?: CallOptions & ReadOptions) => Promise<Uint8Array>
  /** As UTF-8. */
  readText: (path: string, options?: CallOptions & ReadOptions) => Promise<string>
  /** A file of any size, as it is read. */
  readStream: (path: string, options?: CallOptions & ReadOptions) => Promise<ReadableStream<Uint8Array>>
  /**
   * Writes a file of any size: one of this machine by `openAsBlob` of `node:fs`, for example. A stream is sent as it comes, and
   * once: such a call is not repeated.
   */
  writeStream: (
    path: string,
    content: Uint8Array | Blob | ReadableStream<Uint8Array>,
    options?: CallOptions & WriteOptions,
  ) => Promise<FileWritten>
  /**
   * What changes in a directory, with `recursive` also below it, until it is removed or the unit's run ends. `overflow` says
   * that some changes were lost.
   */
  watch: (
    path: string,
    options?: CallOptions & { recursive?: boolean | undefined },
  ) => AsyncGenerator<WatchedChange>
  /** What is at a path: its type, size, mode and owner. A link is not followed. */
  facts: (path: string, options?: CallOptions & ReadOptions) => Promise<FileFacts>
  /** Makes the directories above the new path, and replaces a file there. */
  move: (path: string, to: string, options?: CallOptions & Pick<WriteOptions, 'user'>) => Promise<FileMoved>
  /** With those above it. */
  makeDirectory: (path: string, options?: CallOptions & WriteOptions) => Promise<DirectoryMade>
  /** What is in a directory, by name; with `depth` also what is in its directories. */
  list: (
    path: string,
    options?: ListOptions & ReadOptions & { depth?: number | undefined },
  ) => List<DirectoryEntry>
  /** A directory with all that is in it only where `recursive` says so. */
  delete: (path: string, options?: CallOptions & { recursive?: boolean | undefined }) => Promise<FileDeleted>
  /** A directory or file as a tar archive, as it is made. It is the unit's: unpack it as you would a stranger's. */
  archive: (path: string, options?: CallOptions & ReadOptions) => Promise<ReadableStream<Uint8Array>>
  /**
   * Unpacks a tar archive into a directory, which is made if it is not there. With `keep`, files that exist are written
   * in place, as by `cp -r`: they keep their mode and owner, and links are followed.
   */
  unpack: (
    path: string,
    archive: Uint8Array | Blob,
    options?: CallOptions & { keep?: boolean | undefined },
  ) => Promise<ArchiveWritten>
}

const LONGEST_STREAM_MS = 3_600_000

function octal(mode: number | undefined): string | undefined {
  return mode?.toString(8).padStart(4, '0')
}

export function filesOf(transport: Transport, unitId: string): Files {
  const unit = `/v1/units/${encodeURIComponent(unitId)}`
  const url = `${unit}/files`
  const archives = `${unit}/archive`
  const read: Files['read'] = async (path, { user, ...options } = {}) => {
    const { contentBase64 } = await transport.json<FileRead>({
      method: 'GET',
      path: url,
      query: { path, user },
      ...options,
    })
    return bytesOfBase64(contentBase64)
  }
  return {
    write: async (path, content, { mode, user, ...options } = {}) => {
      const body = typeof content === 'string' ? new TextEncoder().encode(content) : content
      return await transport.json<FileWritten>({
        method: 'PUT',
        path: url,
        query: { path, mode: octal(mode), user },
        body,
        ...options,
      })
    },
    read,
    readText: async (path, options) => textOf([await read(path, options)]),
    readStream: async (path, { user, ...options } = {}) =>
      await transport.bytes({ method: 'GET', path: `${url}/content`, query: { path, user }, ...options }),
    writeStream: async (path, content, { mode, user, ...options } = {}) =>
      await transport.json<FileWritten>({
        method: 'PUT',
        path: `${url}/content`,
        query: { path, mode: octal(mode), user },
        body: content,
        extraMs: LONGEST_STREAM_MS,
        ...options,
      }),
    watch: async function* (path, { recursive, ...options } = {}) {
      const call = { method: 'GET' as const, path: `${url}/watch`, query: { path, recursive }, ...options }
      for await (const { event, data } of transport.events(call)) {
        if (event === 'end') return
        yield { path: '', ...(data as object), event } as WatchedChange
      }
    },
    facts: async (path, { user, ...options } = {}) =>
      await transport.json<FileFacts>({
        method: 'GET',
        path: `${url}/facts`,
        query: { path, user },
        ...options,
      }),
    move: async (path, to, { user, ...options } = {}) =>
      await transport.json<FileMoved>({
        method: 'POST',
        path: `${url}/move`,
        body: { path, to, user },
        ...options,
      }),
    makeDirectory: async (path, { mode, user, ...options } = {}) =>
      await transport.json<DirectoryMade>({
        method: 'POST',
        path: `${unit}/directory`,
        body: { path, mode: octal(mode), user },
        ...options,
      }),
    list: (path, { limit, depth, user, ...options } = {}) =>
      listOf(async (after) => {
        const query = { path, after, limit, depth, user }
        const listed = await transport.json<DirectoryList>({
          method: 'GET',
          path: `${unit}/directory`,
          query,
          ...options,
        })
        return { items: listed.entries, next: listed.next }
      }),
    delete: async (path, { recursive, ...options } = {}) =>
      await transport.json<FileDeleted>({
        method: 'DELETE',
        path: url,
        query: { path, recursive },
        ...options,
      }),
    archive: async (path, { user, ...options } = {}) =>
      await transport.bytes({ method: 'GET', path: archives, query: { path, user }, ...options }),
    unpack: async (path, archive, { keep, ...options } = {}) =>
      await transport.json<ArchiveWritten>({
        method: 'PUT',
        path: archives,
        query: { path, keep },
        body: archive,
        headers: { 'content-type': 'application/x-tar' },
        extraMs: 240_000,
        ...options,
      }),
  }
}
