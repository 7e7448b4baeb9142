// Files of a unit: up to 1 MB each by `read` and `write`, directories of up to 2 GB as tar archives.

import { bytesOfBase64, textOf } from './command.ts'
import type {
  ArchiveWritten,
  DirectoryEntry,
  DirectoryList,
  FileDeleted,
  FileRead,
  FileWritten,
} from './contract.ts'
import { type List, type ListOptions, listOf } from './list.ts'
import type { CallOptions, Transport } from './transport.ts'
import type { Blob, ReadableStream } from './platform.ts'

export type Files = {
  /**
   * Makes the directories on the way. Throws `validation` over 1 MB. Without `mode`, such as 0o755, a file that exists
   * keeps its own.
   */
  write: (
    path: string,
    content: string | Uint8Array | Blob,
    options?: CallOptions & { mode?: number | undefined },
  ) => Promise<FileWritten>
  /** Throws `not_found` where there is none, `validation` over 1 MB. */
  read: (path: string, options?: CallOptions) => Promise<Uint8Array>
  /** As UTF-8. */
  readText: (path: string, options?: CallOptions) => Promise<string>
  /** What is in a directory, by name. */
  list: (path: string, options?: ListOptions) => List<DirectoryEntry>
  /** A directory with all that is in it only where `recursive` says so. */
  delete: (path: string, options?: CallOptions & { recursive?: boolean | undefined }) => Promise<FileDeleted>
  /** A directory or file as a tar archive, as it is made. It is the unit's: unpack it as you would a stranger's. */
  archive: (path: string, options?: CallOptions) => Promise<ReadableStream<Uint8Array>>
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

export function filesOf(transport: Transport, unitId: string): Files {
  const unit = `/v1/units/${encodeURIComponent(unitId)}`
  const url = `${unit}/files`
  const archives = `${unit}/archive`
  const read: Files['read'] = async (path, options = {}) => {
    const { contentBase64 } = await transport.json<FileRead>({
      method: 'GET',
      path: url,
      query: { path },
      ...options,
    })
    return bytesOfBase64(contentBase64)
  }
  return {
    write: async (path, content, { mode, ...options } = {}) => {
      const body = typeof content === 'string' ? new TextEncoder().encode(content) : content
      return await transport.json<FileWritten>({
        method: 'PUT',
        path: url,
        query: { path, mode: mode?.toString(8).padStart(4, '0') },
        body,
        ...options,
      })
    },
    read,
    readText: async (path, options) => textOf([await read(path, options)]),
    list: (path, { limit, ...options } = {}) =>
      listOf(async (after) => {
        const query = { path, after, limit }
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
    archive: async (path, options = {}) =>
      await transport.bytes({ method: 'GET', path: archives, query: { path }, ...options }),
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
