// Files of a unit, up to 1 MB each.

import { bytesOfBase64 } from './command.ts'
import type { FileRead, FileWritten } from './contract.ts'
import type { CallOptions, Transport } from './transport.ts'

export type Files = {
  /** Makes the directories on the way. Throws `validation` over 1 MB. */
  write: (path: string, content: string | Uint8Array | Blob, options?: CallOptions) => Promise<FileWritten>
  /** Throws `not_found` where there is none, `validation` over 1 MB. */
  read: (path: string, options?: CallOptions) => Promise<Uint8Array>
  /** As UTF-8. */
  readText: (path: string, options?: CallOptions) => Promise<string>
}

export function filesOf(transport: Transport, unitId: string): Files {
  const url = `/v1/units/${encodeURIComponent(unitId)}/files`
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
    write: async (path, content, options = {}) => {
      const body = typeof content === 'string' ? new TextEncoder().encode(content) : content
      return await transport.json<FileWritten>({
        method: 'PUT',
        path: url,
        query: { path },
        body,
        ...options,
      })
    },
    read,
    readText: async (path, options) => new TextDecoder().decode(await read(path, options)),
  }
}
