// Translates errors of a path in a unit into errors of the contract.

import { type AppError, type FileReason, invalidState, notFound, validation } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { type EngineErrorKind, isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import { notPossible } from './lifecycle/failures.ts'
import { machineSizes } from './model/machine.ts'

type Refusals = Partial<Record<EngineErrorKind, (path: string, said: string) => AppError>>

const ofPath = (reason: FileReason, message: string) => validation([{ path: 'path', message, reason }])

/** What the unit's file system says, in the words of the C library. */
const saidReasons: [said: RegExp, reason: FileReason][] = [
  [/not permitted|permission denied/i, 'not_permitted'],
  [/read-only/i, 'read_only'],
  [/too many levels of symbolic links/i, 'too_many_links'],
  [/name too long/i, 'name_too_long'],
  [/not a directory/i, 'not_a_directory'],
  [/is a directory/i, 'not_a_file'],
]

function reasonIn(said: string): FileReason {
  return saidReasons.find(([pattern]) => pattern.test(said))?.[1] ?? 'refused'
}

/** Failures that are about the path, by what the caller can do; others go on as they are. */
const refusals: Refusals = {
  file_not_found: (path) => notFound('file', path),
  not_a_file: (path) => ofPath('not_a_file', `${path} is not a regular file`),
  not_a_directory: (path) => ofPath('not_a_directory', `${path} is not a directory`),
  directory_not_empty: (path) =>
    invalidState(`${path} is a directory that is not empty; send recursive=true to delete all of it.`, {
      reason: 'directory_not_empty' satisfies FileReason,
    }),
  not_an_archive: () =>
    validation([
      { path: '', message: 'the body must be a whole archive in the format of tar, uncompressed' },
    ]),
  file_too_large: () => fileTooLarge('path'),
  file_refused: (path, said) => ofPath(reasonIn(said), `${path}: ${said}`),
  unknown_user: (_path, said) => validation([{ path: 'user', message: said }]),
  bad_path: (_path, said) => validation([{ path: 'path', message: said }]),
}

/** Whether the machine stopped to run under what was being done. */
export function isOver(error: unknown): boolean {
  return (
    isEngineError(error, 'not_running') ||
    isEngineError(error, 'frozen') ||
    isEngineError(error, 'unknown_machine')
  )
}

/** Turns errors of the engine into the refusals that callers get, and throws any other error unchanged. */
export function refuseFile(unit: UnitRecord, path: string, own: Refusals = {}): (error: unknown) => never {
  return (error) => {
    if (!isEngineError(error)) throw error
    const shown = path.toWellFormed()
    if (error.kind === 'disk_full') throw diskFull(unit, shown)
    // The unit can be the reason of it, by what it does or by a tree that is too large.
    if (error.kind === 'timeout') throw notPossible(unit, `${shown}: ${error.publicMessage}`)
    const refusal = own[error.kind] ?? refusals[error.kind]
    throw refusal ? refusal(shown, error.publicMessage) : error
  }
}

const streams = {
  file: {
    ended: 'The unit was stopped or fell asleep under the file.',
    tooLarge: `a file must be at most ${limits.streamedFileBytes} bytes`,
  },
  archive: {
    ended: 'The unit was stopped or fell asleep under the archive; part of it is done.',
    tooLarge: `an archive must be at most ${limits.archiveBytes} bytes`,
  },
}

/** The same of what comes in pieces. What has begun is not begun again: part of it is with the other side already. */
export function refuseStream(
  unit: UnitRecord,
  path: string,
  { of, begun }: { of: keyof typeof streams; begun: boolean },
  error: unknown,
): never {
  const { ended, tooLarge } = streams[of]
  if (begun && isOver(error)) throw notPossible(unit, ended)
  return refuseFile(unit, path, {
    file_too_large: () => ofPath('too_large', tooLarge),
  })(error)
}

export function fileTooLarge(field: string): AppError {
  const message = `a file must be at most ${limits.fileBytes} bytes`
  return validation([{ path: field, message, reason: 'too_large' }])
}

/** Nothing is wrong with the call: it can be sent again once there is room. */
function diskFull(unit: UnitRecord, path: string): AppError {
  const { volume } = unit.spec
  const isOfVolume = volume !== null && (path === volume.mount || path.startsWith(`${volume.mount}/`))
  const [what, gb] = isOfVolume ? ['volume', volume.gb] : ['disk', machineSizes[unit.size].diskGb]
  const text = `${path} cannot be written: the unit's ${what} is full (${gb} GB), or its team's share of the host's is.`
  const reason: FileReason = 'disk_full'
  return notPossible(unit, `${text} Remove files from it, then send this again.`, { reason })
}
