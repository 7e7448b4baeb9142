// Files of this computer, for `berth cp`. Paths are strings of bytes ("latin1"), so that every name can be used.

import { Failure } from './failure.ts'

export type UnitPlace = { unit: string; path: string }
export type Copied = { path: string; bytes: number }

export const latin1 = (text: string): string => Buffer.from(text).toString('latin1')
export const bytesOf = (path: string): Buffer => Buffer.from(path, 'latin1')
export const shown = (path: string): string => bytesOf(path).toString()

/** What a copy of this path is called in another folder; empty for `.` and `dir/.`, whose content is meant. */
export function nameOf(path: string): string {
  const last = path.replace(/\/+$/, '').split('/').at(-1) ?? ''
  return last === '.' || last === '..' ? '' : last
}

export async function ifThere<T>(found: Promise<T>): Promise<T | null> {
  return await found.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

export function refuse(path: string, error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException
  const why: Record<string, string> = {
    ENOENT: 'is not there',
    EACCES: 'may not be used',
    EISDIR: 'is a directory',
    ENOTDIR: 'is no directory',
  }
  throw new Failure(`${path} ${why[code ?? ''] ?? `cannot be used: ${message}`}.`, {
    hint: 'berth cp --help',
    code: code === 'ENOENT' ? 'not_found' : 'failed',
  })
}
