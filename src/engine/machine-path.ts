// Paths in a machine, as callers write them. The machine's own file system resolves symlinks; this only refuses what
// can never name a file, before anything runs for it. What is not UTF-8 in a path comes as in lib/byte-text.ts.

import { posix } from 'node:path'
import { bytesOfText } from '../lib/byte-text.ts'
import { EngineError } from './errors.ts'

/** PATH_MAX and NAME_MAX of Linux, in bytes. */
const PATH_BYTES = 4095
const NAME_BYTES = 255

/** Returns the path without doubled slashes and `.`; throws EngineError `bad_path` with a sentence for the caller. */
export function machinePath(path: string): string {
  if (!path.startsWith('/')) throw badPath('must be absolute, such as /root/main.py')
  if (path.includes('\0')) throw badPath('must not contain a NUL character')
  if (bytesOfText(path).length > PATH_BYTES) throw badPath(`must have at most ${PATH_BYTES} bytes`)
  const names = path.split('/')
  if (names.includes('..')) throw badPath('must not contain ".."')
  if (names.some((name) => bytesOfText(name).length > NAME_BYTES)) {
    throw badPath(`must have names of at most ${NAME_BYTES} bytes`)
  }
  if (path.endsWith('/')) throw badPath('must name a file, not a directory')
  return posix.normalize(path)
}

/** The same of a directory, which may be the root. */
export function machineDirectory(path: string): string {
  return path === '/' ? path : machinePath(path)
}

function badPath(why: string): EngineError {
  return new EngineError('bad_path', `The path ${why}.`)
}
