// Directories of a unit: lists them, deletes them, and reads or writes a whole one as an archive. As with files, all
// of it happens inside the unit, which wakes for it and stays awake meanwhile.

import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import {
  type ArchiveWritten,
  type DirectoryList,
  cursorAfter,
  namedEntry,
  namedPath,
  nameBefore,
  octalMode,
} from '../../contract/files.ts'
import { limits } from '../../contract/limits.ts'
import { isEngineError } from '../../engine/errors.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { refuseFile } from './file-refusals.ts'
import { notPossible } from './lifecycle/failures.ts'
import { machineRef } from './model/machine.ts'

export async function listDirectory(
  app: App,
  caller: Caller,
  id: string,
  { path, after, limit }: { path: string; after?: string | undefined; limit: number },
): Promise<DirectoryList> {
  return await useUnit(app, caller, id, 'no directory can be listed in it', async (unit) => {
    const listing = app.fleet.engineOf(unit).listDirectory(machineRef(unit), path)
    const { entries, truncated } = await listing.catch(refuseFile(unit, path))
    const before = after === undefined ? '' : nameBefore(after)
    const rest = entries.filter(({ name }) => name > before)
    const page = rest.slice(0, limit)
    const last = rest.length > page.length ? page.at(-1) : undefined
    return {
      ...namedPath(path),
      entries: page.map((entry) => ({
        ...entry,
        ...namedEntry(entry.name),
        mode: octalMode(entry.mode),
        modifiedAt: entry.modifiedAt.toISOString(),
      })),
      next: last === undefined ? null : cursorAfter(last.name),
      truncated,
    }
  })
}

export async function deleteFile(
  app: App,
  caller: Caller,
  id: string,
  { path, recursive }: { path: string; recursive: boolean },
): Promise<ReturnType<typeof namedPath>> {
  return await useUnit(app, caller, id, 'no file can be deleted in it', async (unit) => {
    await app.fleet.engineOf(unit).removeFile(machineRef(unit), path, recursive).catch(refuseFile(unit, path))
    return namedPath(path)
  })
}

/** `send` waits until the caller has room for more. */
export async function readArchive(
  app: App,
  caller: Caller,
  id: string,
  path: string,
  send: (data: Buffer) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await useUnit(app, caller, id, 'no archive can be made of it', async (unit) => {
    let begun = false
    const forward = async (data: Buffer) => {
      begun = true
      await send(data)
    }
    await app.fleet
      .engineOf(unit)
      .readArchive(machineRef(unit), path, forward, signal)
      .catch((error: unknown) => refuseArchive(unit, path, error, begun))
  })
}

export async function writeArchive(
  app: App,
  caller: Caller,
  id: string,
  { path, keep }: { path: string; keep: boolean },
  pieces: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<ArchiveWritten> {
  let bytes = 0
  const counted = async function* () {
    for await (const piece of pieces) {
      bytes += piece.length
      yield piece
    }
  }
  return await useUnit(app, caller, id, 'no archive can be unpacked in it', async (unit) => {
    await app.fleet
      .engineOf(unit)
      .writeArchive(machineRef(unit), path, counted(), signal, keep)
      .catch((error: unknown) => refuseArchive(unit, path, error, bytes > 0))
    return { ...namedPath(path), bytes }
  })
}

/** What has begun is not begun again: part of it is with the other side already. */
function refuseArchive(unit: UnitRecord, path: string, error: unknown, begun: boolean): never {
  const isOver = isEngineError(error, 'not_running') || isEngineError(error, 'frozen')
  if (begun && (isOver || isEngineError(error, 'unknown_machine')))
    throw notPossible(unit, 'The unit was stopped or fell asleep under the archive; part of it is done.')
  return refuseFile(unit, path, {
    file_too_large: () =>
      validation([{ path: 'path', message: `an archive must be at most ${limits.archiveBytes} bytes` }]),
  })(error)
}
