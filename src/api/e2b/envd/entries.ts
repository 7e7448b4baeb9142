// What is at a path, as this interface shows it.

import { posix } from 'node:path'
import type { DirectoryList, FileFacts } from '../../../contract/files.ts'
import { toAppError } from '../../http/errors.ts'
import { operate, type SandboxCall } from '../sandbox-call.ts'
import { type FileMetadata, readFileMetadata } from './file-metadata.ts'
import type { Answer } from './rpc.ts'

type Facts = Pick<FileFacts, 'type' | 'mode' | 'bytes' | 'modifiedAt' | 'uid' | 'gid' | 'owner' | 'group'>

const UNSPECIFIED = 0
const types = { file: 1, directory: 2, link: 3, other: UNSPECIFIED } as const
const letters = { file: '-', directory: 'd', link: 'L', other: '?' } as const

/** Of a link: of what it leads to, if that is there. */
export async function entryAt(call: SandboxCall, path: string): Promise<Answer> {
  const facts = await factsOf(call, path)
  const link = facts.type === 'link' ? await linkOf(call, path, facts.target) : null
  return toEntry(path, facts, link, (await readFileMetadata(call))[path])
}

/** Of the kernel. */
const MAX_CHAIN = 40
/** As clients expect it of a directory: the file system here counts none for one without entries. */
const DIRECTORY_BYTES = 4096
/** Links beyond this number of a list are shown as links, and not by what they lead to. */
const MAX_FOLLOWED = 32

export async function entriesOf(
  call: SandboxCall,
  folder: string,
  entries: DirectoryList['entries'],
): Promise<Answer[]> {
  const shown: Answer[] = []
  const metadata = await readFileMetadata(call)
  let followed = 0
  for (const entry of entries) {
    if (entry.encoding !== undefined) continue
    const path = posix.join(folder, entry.name)
    const isFollowed = entry.type === 'link' && followed++ < MAX_FOLLOWED
    shown.push(isFollowed ? await entryAt(call, path) : toEntry(path, entry, null, metadata[path]))
  }
  return shown
}

async function factsOf(call: SandboxCall, path: string): Promise<FileFacts> {
  return (await operate(call, 'GET /v1/units/{id}/files/facts', { query: { path } })) as FileFacts
}

type Link = { target: string; type: keyof typeof types }

/** Links that lead to links are followed to their end, or as far as the kernel would. */
async function linkOf(call: SandboxCall, path: string, target: string | null, followed = 1): Promise<Link> {
  const leadsTo = posix.resolve(posix.dirname(path), target ?? '')
  try {
    const { type, target: next } = await factsOf(call, leadsTo)
    if (type === 'link' && followed < MAX_CHAIN) return await linkOf(call, leadsTo, next, followed + 1)
    return { target: leadsTo, type }
  } catch (error) {
    const { status } = toAppError(error)
    if (status !== 404 && status !== 400) throw error
    return { target: leadsTo, type: 'link' }
  }
}

function toEntry(path: string, facts: Facts, link: Link | null, metadata: FileMetadata | undefined): Answer {
  const mode = Number.parseInt(facts.mode, 8)
  const modifiedMs = Date.parse(facts.modifiedAt)
  return {
    name: posix.basename(path),
    path,
    type: types[link?.type ?? facts.type],
    size: BigInt(facts.type === 'directory' ? Math.max(facts.bytes, DIRECTORY_BYTES) : facts.bytes),
    mode,
    permissions: permissionsOf(letters[facts.type], mode),
    owner: facts.owner ?? String(facts.uid),
    group: facts.group ?? String(facts.gid),
    modifiedTime: {
      seconds: BigInt(Math.floor(modifiedMs / 1000)),
      nanos: (modifiedMs % 1000) * 1_000_000,
    },
    ...(link && { symlinkTarget: link.target }),
    ...(metadata && { metadata }),
  }
}

/** As `ls -l` writes them, but for the letter of the type. */
function permissionsOf(letter: string, mode: number): string {
  const bits = Array.from('rwxrwxrwx', (bit, index) => ((mode >> (8 - index)) & 1 ? bit : '-'))
  return letter + bits.join('')
}
