// Files of a fake machine: a map from path to content. Directories are what lies above a file, or one of
// the few a real image always has.

import { createHash } from 'node:crypto'
import type {
  Directory,
  EntryFacts,
  FileFacts,
  FileOwner,
  ReadFile,
  WrittenFile,
} from '../../../src/engine/engine.ts'
import type { Clock } from '../../../src/lib/clock.ts'
import { EngineError } from '../../../src/engine/errors.ts'
import { machineDirectory, machinePath } from '../../../src/engine/machine-path.ts'

const DIRECTORIES = ['/', '/etc', '/home', '/root', '/tmp', '/usr', '/usr/bin', '/var']
const READ_ONLY = /^\/(?:proc|sys|dev)(?:\/|$)/

/** Of contents that have another mode than 0644. */
const modes = new WeakMap<Buffer, number>()

type User = { uid: number; name: string }
const ROOT: User = { uid: 0, name: 'root' }
/** The accounts of every fake machine. */
const users: readonly User[] = [ROOT, { uid: 1, name: 'daemon' }]
const owners = new WeakMap<Buffer, User>()

/** Throws `unknown_user`. */
export function userNamed(user: string): User {
  const found = users.find(({ uid, name }) => name === user || String(uid) === user)
  if (found) return found
  throw new EngineError('unknown_user', `/etc/passwd of the unit has no user "${user}".`)
}

function ownerAt(files: Map<string, Buffer>, path: string): User {
  const content = files.get(path)
  return (content && owners.get(content)) ?? ROOT
}

/** A directory that was made: an entry without a name in it. */
const MARK = '/'

export function makeIn(files: Map<string, Buffer>, made: string, { mode = 0o755, user }: FileOwner): boolean {
  const path = machinePath(made)
  const owner = user === undefined ? ROOT : userNamed(user)
  if (files.has(path)) throw new EngineError('not_a_directory', 'The path is not a directory.')
  if (isDirectory(files, path)) return false
  setFile(files, path + MARK, Buffer.alloc(0), mode, owner)
  return true
}

export function moveIn(files: Map<string, Buffer>, from: string, to: string): void {
  const [source, target] = [machinePath(from), machinePath(to)]
  if (isDirectory(files, target)) throw new EngineError('not_a_file', 'The path is a directory.')
  const moved = [...files].filter(([path]) => path === source || path.startsWith(`${source}/`))
  if (moved.length === 0) throw notFound()
  for (const [path, content] of moved) {
    files.delete(path)
    files.set(target + path.slice(source.length), content)
  }
}

export function statIn(files: Map<string, Buffer>, asked: string, clock: Clock): FileFacts {
  const path = machineDirectory(asked)
  const content = files.get(path)
  if (content === undefined && !isDirectory(files, path)) throw notFound()
  return { ...factsAt(files, path, clock), target: null }
}

function factsAt(files: Map<string, Buffer>, path: string, clock: Clock): EntryFacts {
  const content = files.get(path)
  const isMade = files.has(path + MARK)
  const { uid, name } = ownerAt(files, isMade ? path + MARK : path)
  return {
    type: content === undefined ? 'directory' : 'file',
    mode: content !== undefined || isMade ? modeAt(files, isMade ? path + MARK : path) : 0o755,
    bytes: content?.length ?? 4096,
    modifiedAt: clock.now(),
    uid,
    gid: uid,
    owner: name,
    group: name,
  }
}

export function writeInto(
  files: Map<string, Buffer>,
  written: string,
  content: Buffer,
  { mode, user }: FileOwner = {},
): WrittenFile {
  const path = machinePath(written)
  if (READ_ONLY.test(path)) throw new EngineError('file_refused', `${path} cannot be written.`)
  if (isDirectory(files, path)) throw new EngineError('not_a_file', `${path} is a directory.`)
  const owner = user === undefined ? ownerAt(files, path) : userNamed(user)
  setFile(files, path, content, mode ?? modeAt(files, path), owner)
  return { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex'), verified: true }
}

/** A copy of the content: the caller may use its buffer again. */
function setFile(
  files: Map<string, Buffer>,
  path: string,
  content: Buffer,
  mode: number,
  owner = ROOT,
): void {
  const kept = Buffer.from(content)
  modes.set(kept, mode)
  owners.set(kept, owner)
  files.set(path, kept)
}

function modeAt(files: Map<string, Buffer>, path: string): number {
  const content = files.get(path)
  return (content && modes.get(content)) ?? 0o644
}

export function readFrom(files: Map<string, Buffer>, read: string, maxBytes: number): ReadFile {
  const path = machinePath(read)
  if (isDirectory(files, path)) throw new EngineError('not_a_file', `${path} is a directory.`)
  const content = files.get(path)
  if (!content) throw new EngineError('file_not_found', `There is no file ${path}.`)
  if (content.length > maxBytes)
    throw new EngineError('file_too_large', `${path} has more than ${maxBytes} bytes.`)
  return { content, mode: modeAt(files, path) }
}

function isDirectory(files: Map<string, Buffer>, path: string): boolean {
  return DIRECTORIES.includes(path) || [...files.keys()].some((file) => file.startsWith(`${path}/`))
}

export function listIn(files: Map<string, Buffer>, listed: string, clock: Clock, depth = 1): Directory {
  const path = machineDirectory(listed)
  if (files.has(path)) throw new EngineError('not_a_directory', 'The path is not a directory.')
  if (!isDirectory(files, path)) throw notFound()
  const above = path === '/' ? '/' : `${path}/`
  const below = [...files.keys(), ...DIRECTORIES.slice(1)].filter((each) => each.startsWith(above))
  const names = new Set(below.flatMap((each) => namesDownTo(each.slice(above.length), depth)))
  const entries = [...names].toSorted().map((name) => ({ name, ...factsAt(files, above + name, clock) }))
  return { entries, truncated: false }
}

/** A path and those above it, as far down as is asked. */
function namesDownTo(path: string, depth: number): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.slice(0, depth).map((_part, index) => parts.slice(0, index + 1).join('/'))
}

export function removeFrom(files: Map<string, Buffer>, removed: string, recursive: boolean): void {
  const path = machinePath(removed)
  if (READ_ONLY.test(path)) throw new EngineError('file_refused', `${path} cannot be removed.`)
  if (files.delete(path)) return
  if (!isDirectory(files, path)) throw notFound()
  const below = [...files.keys()].filter((file) => file.startsWith(`${path}/`))
  if (below.some((file) => file !== path + MARK) && !recursive)
    throw new EngineError('directory_not_empty', 'The directory is not empty.')
  for (const file of below) files.delete(file)
}

/** As tar, with nothing but names and contents. */
export function archiveOf(files: Map<string, Buffer>, read: string): Buffer[] {
  const path = machineDirectory(read)
  const single = files.get(path)
  if (single === undefined && !isDirectory(files, path)) throw notFound()
  const above = path === '/' ? '/' : `${path}/`
  const found: [string, Buffer][] =
    single === undefined
      ? [...files]
          .filter(([file]) => file.startsWith(above))
          .map(([file, content]) => [file.slice(above.length), content])
      : [[path.slice(path.lastIndexOf('/') + 1), single]]
  const entries: Buffer[] = single === undefined ? [headerOf('./', 0, '5')] : []
  for (const [name, content] of found) entries.push(headerOf(`./${name}`, content.length), padded(content))
  return [...entries, Buffer.alloc(2 * BLOCK)]
}

export function unpackInto(files: Map<string, Buffer>, written: string, archive: Buffer): void {
  const path = machineDirectory(written)
  if (files.has(path)) throw new EngineError('not_a_directory', 'The path is not a directory.')
  for (let at = 0; ; ) {
    const header = archive.subarray(at, at + BLOCK)
    if (header.length < BLOCK)
      throw new EngineError('not_an_archive', 'This is no whole archive in the format of tar.')
    if (header.every((byte) => byte === 0)) return
    const size = Number.parseInt(header.toString('latin1', 124, 135), 8)
    const name = header.toString('utf8', 0, 100).replace(/\0.*$/s, '')
    const content = archive.subarray(at + BLOCK, at + BLOCK + size)
    if (!header.toString('latin1', 257, 262).startsWith('ustar') || content.length < size)
      throw new EngineError('not_an_archive', 'This is no whole archive in the format of tar.')
    const inside = name.split('/').filter((part) => part !== '.' && part !== '..' && part !== '')
    const mode = Number.parseInt(header.toString('latin1', 100, 107), 8)
    if (header[156] !== 0x35) setFile(files, [path === '/' ? '' : path, ...inside].join('/'), content, mode)
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
  }
}

const BLOCK = 512

function headerOf(name: string, bytes: number, type = '0'): Buffer {
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 100)
  header.write('0000644\u00000000000\u00000000000\0', 100, 'latin1')
  header.write(`${bytes.toString(8).padStart(11, '0')}\u000000000000000\0        0`, 124, 'latin1')
  header.write(type, 156)
  header.write('ustar\u000000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

function padded(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)])
}

function notFound(): EngineError {
  return new EngineError('file_not_found', 'There is no file at that path.')
}
