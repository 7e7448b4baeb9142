// What adapters of several frameworks do with paths.

import { isBerthError } from '../errors.ts'
import type { FileFacts } from '../contract.ts'
import type { Unit } from '../unit.ts'

/** The path as the files API takes it: absolute, without `.`, `..` and empty parts. A relative one is below `directory`. */
export function absolutePath(path: string, directory: string): string {
  const parts: string[] = []
  for (const part of (path.startsWith('/') ? path : `${directory}/${path}`).split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return `/${parts.join('/')}`
}

/** Whether a file or directory is missing. A missing unit is another error. */
export function isMissingFile(error: unknown): boolean {
  return isBerthError(error, 'not_found') && /^There is no (?:file|directory)/.test(error.message)
}

/** Null where there is no such file or directory. */
export async function orNull<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call
  } catch (error) {
    if (isMissingFile(error)) return null
    throw error
  }
}

/** What is at a path, or where the link there leads; null where nothing is. Needs `readlink` in the unit for links. */
export async function factsBehindLinks(
  unit: Unit,
  path: string,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<FileFacts | null> {
  const facts = await orNull(unit.files.facts(path, options))
  if (facts?.type !== 'link') return facts
  const { stdout, exitCode } = await unit.exec(['readlink', '-f', '--', path], options)
  return exitCode === 0 ? await orNull(unit.files.facts(stdout.replace(/\n$/, ''), options)) : null
}
