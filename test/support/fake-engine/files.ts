// Files of a fake machine: a map from path to content. Directories are what lies above a file, or one of
// the few a real image always has.

import { createHash } from 'node:crypto'
import type { WrittenFile } from '../../../src/engine/engine.ts'
import { EngineError } from '../../../src/engine/errors.ts'
import { machinePath } from '../../../src/engine/machine-path.ts'

const DIRECTORIES = ['/', '/etc', '/home', '/root', '/tmp', '/usr', '/usr/bin', '/var']
const READ_ONLY = /^\/(?:proc|sys|dev)(?:\/|$)/

export function writeInto(files: Map<string, Buffer>, written: string, content: Buffer): WrittenFile {
  const path = machinePath(written)
  if (READ_ONLY.test(path)) throw new EngineError('file_refused', `${path} cannot be written.`)
  if (isDirectory(files, path)) throw new EngineError('not_a_file', `${path} is a directory.`)
  // A copy: the caller may use its buffer again.
  files.set(path, Buffer.from(content))
  return { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex'), verified: true }
}

export function readFrom(files: Map<string, Buffer>, read: string, maxBytes: number): Buffer {
  const path = machinePath(read)
  if (isDirectory(files, path)) throw new EngineError('not_a_file', `${path} is a directory.`)
  const content = files.get(path)
  if (!content) throw new EngineError('file_not_found', `There is no file ${path}.`)
  if (content.length > maxBytes)
    throw new EngineError('file_too_large', `${path} has more than ${maxBytes} bytes.`)
  return content
}

function isDirectory(files: Map<string, Buffer>, path: string): boolean {
  return DIRECTORIES.includes(path) || [...files.keys()].some((file) => file.startsWith(`${path}/`))
}
