// Files of a unit, by the API. What they hold is bytes of a stranger: it is shown as text and kept as a download.

import type { Contract, Files } from '@berth/sdk'
import { berthOf } from '../api/client.ts'
import { queryOptions } from '@tanstack/react-query'
import { save } from '../ui/download.ts'
import { pictureTypeOf } from '../../../sdk/src/picture-type.ts'
import { dataUrl } from './data-url.ts'
import { tarOf } from './tar.ts'

/** Above it a file is read and written as an archive. */
export const FILE_BYTES = 1_000_000

/** A name below a directory. */
export const pathIn = (directory: string, name: string) =>
  directory === '/' ? `/${name}` : `${directory}/${name}`
export const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)

export type Place = { team: string; unit: Contract.Unit }

const filesOf = ({ team, unit }: Place): Files => berthOf(team).units.of(unit).files

export const directoryQuery = ({ team, unit: { id } }: Place, path: string) =>
  queryOptions({
    queryKey: [team, 'directory', id, path],
    queryFn: async ({ signal }) => {
      const entries: Contract.DirectoryEntry[] = []
      for (let after: string | undefined; ; ) {
        const page: Contract.DirectoryList = await berthOf(team).request(
          'GET',
          `/v1/units/${encodeURIComponent(id)}/directory`,
          { query: { path, after }, signal },
        )
        entries.push(...page.entries.map(asText))
        if (page.next === null) return { entries, truncated: page.truncated }
        after = page.next
      }
    },
    staleTime: 0,
    gcTime: 0,
  })

/** Where its first process works, which is the image's directory to work in; else the root. */
export const homeQuery = (place: Place) =>
  queryOptions({
    queryKey: [place.team, 'home', place.unit.id],
    queryFn: async ({ signal }) => {
      const { target } = await filesOf(place).facts('/proc/1/cwd', { signal })
      return target?.startsWith('/') ? target : '/'
    },
    staleTime: Number.POSITIVE_INFINITY,
  })

/** A name that is not UTF-8 is shown with U+FFFD, and names nothing: its base64 could be the name of another file. */
function asText(entry: Contract.DirectoryEntry): Contract.DirectoryEntry {
  if (entry.encoding === undefined) return entry
  const bytes = Uint8Array.from(atob(entry.name), (character) => character.charCodeAt(0))
  return { ...entry, name: new TextDecoder().decode(bytes) }
}

export const fileQuery = (place: Place, path: string) =>
  queryOptions({
    queryKey: [place.team, 'file', place.unit.id, path],
    queryFn: async ({ signal }) => await filesOf(place).read(path, { signal }),
    staleTime: 0,
    gcTime: 0,
  })

/** Null for what is no text. */
export function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return null
  }
}

export async function removeEntry(place: Place, path: string, recursive: boolean): Promise<void> {
  await filesOf(place).delete(path, { recursive })
}

export async function renameEntry(place: Place, directory: string, from: string, to: string): Promise<void> {
  await filesOf(place).move(pathIn(directory, from), pathIn(directory, to))
}

export async function makeFolder(place: Place, directory: string, name: string): Promise<void> {
  await filesOf(place).makeDirectory(pathIn(directory, name))
}

/** A picture as an address that this page may draw; null for anything else. An SVG is a document, and shown as text. */
export function pictureOf(bytes: Uint8Array): string | null {
  const type = pictureTypeOf(bytes)
  return type === null ? null : dataUrl(type, bytes)
}

/** Throws with the reason where a file cannot be written. */
export async function upload(place: Place, directory: string, file: File): Promise<void> {
  const files = filesOf(place)
  if (file.size <= FILE_BYTES) {
    await files.write(pathIn(directory, file.name), file, { timeoutMs: 120_000 })
    return
  }
  const archive = tarOf(file)
  if (archive === null) throw new Error('The name of a file above 1 MB may have 100 bytes at most.')
  await files.unpack(directory, archive)
}

/** A file as it is; what is larger, or a directory, as a tar archive. */
export async function takeHome(
  place: Place,
  { path, isWhole }: { path: string; isWhole: boolean },
  { signal, onBytes }: { signal: AbortSignal; onBytes: (count: number) => void },
): Promise<void> {
  const files = filesOf(place)
  const name = nameOf(path) || 'root'
  if (isWhole) {
    save(name, new Blob([(await files.read(path, { signal })) as Uint8Array<ArrayBuffer>]))
    return
  }
  const archive = await files.archive(path, { signal })
  let count = 0
  const counted = archive.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        onBytes((count += chunk.length))
        controller.enqueue(chunk)
      },
    }),
  )
  save(`${name}.tar`, await new Response(counted as ReadableStream<Uint8Array<ArrayBuffer>>).blob())
}
