// What a machine's own disk has in the way of its start: the error names the path that is asked for and the cause, and never
// where a link leads, since a unit chooses that text.

import { EngineError } from '../../errors.ts'

const causes: Record<string, string> = {
  EISDIR: 'a directory is in its place',
  ENOTDIR: 'a file, or a link to one, is where a directory has to be',
  ENOENT: 'a link on the way leads nowhere',
  EEXIST: 'a link on the way leads nowhere',
  ELOOP: "links on the way lead in a circle, or into the kernel's own files",
  EXDEV: 'a link on the way leads out of the disk',
  ENAMETOOLONG: 'a name in it is too long',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
}

/** Of what the kernel does not refuse, and unit-tree.ts does. */
const OTHER_NAME = 'a link on the way leads to a name that is not UTF-8'

/** `what` names the path. An error that no disk can be the reason of is the host's. */
export function inTheWay(what: string, cause: unknown): EngineError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null
  const why = code === null ? OTHER_NAME : causes[code]
  if (why === undefined) return new EngineError('start_failed', `${what}.`, { cause })
  return new EngineError('start_refused', `${what}: ${why}.`, { cause })
}
