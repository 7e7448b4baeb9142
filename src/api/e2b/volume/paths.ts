// Where the files of a volume lie in its unit.

import { posix } from 'node:path'
import { validation } from '../../../contract/errors.ts'
import { limits } from '../../../contract/limits.ts'

export const VOLUME_ROOT = '/var/volume'

/** A path in the unit; none leads out of the volume. */
export function pathInUnit(path: string): string {
  if (path.includes('\0') || path.length > limits.pathLength - VOLUME_ROOT.length)
    throw validation([{ path: 'path', message: `must be a path of at most ${limits.pathLength} characters` }])
  const within = posix.resolve('/', path)
  return within === '/' ? VOLUME_ROOT : `${VOLUME_ROOT}${within}`
}

/** The path as clients see it. */
export function pathInVolume(path: string): string {
  return path === VOLUME_ROOT ? '/' : path.slice(VOLUME_ROOT.length)
}
