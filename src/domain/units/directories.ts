// Directories of a unit: lists them, deletes them, and reads or writes a whole one as an archive. As with files, all
// of it happens inside the unit, which wakes for it and stays awake meanwhile.

import type { App } from '../../app.ts'
import { validation } from '../../contract/errors.ts'
import {
  type ArchiveWritten,
  type DirectoryList,
  type DirectoryMade,
  type FileFacts,
  cursorAfter,
  namedEntry,
  nameBefore,
  octalMode,
} from '../../contract/files.ts'
import { namedPath } from '../../contract/file-paths.ts'
import type { EntryFacts, FileOwner } from '../../engine/engine.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import type { Read } from './files.ts'
import { refuseFile, refuseStream } from './file-refusals.ts'
import { machineRef } from './model/machine.ts'

export async function listDirectory(
  app: App,
  caller: Caller,
  id: string,
  {
    path,
    after,
    limit,
    depth,
    user,
  }: {
    path: string
    after?: string | undefined
    limit: number
    depth?: number
    user?: string | undefined
  },
): Promise<DirectoryList> {
  return await useUnit(app, caller, id, 'no directory can be listed in it', async (unit) => {
    const listing = app.fleet.engineOf(unit).listDirectory(machineRef(unit), path, depth, user)
    const { entries, truncated } = await listing.catch(refuseFile(unit, path))
    const before = after === undefined ? '' : nameBefore(after)
    const rest = entries.filter(({ name }) => name > before)
    const page = rest.slice(0, limit)
    const last = rest.length > page.length ? page.at(-1) : undefined
    return {
      ...namedPath(path),
      entries: page.map((entry) => ({ ...shownFacts(entry), ...namedEntry(entry.name) })),
      next: last === undefined ? null : cursorAfter(last.name),
      truncated,
    }
  })
}

/** What is at a path; a link is not followed. */
export async function getFileFacts(
  app: App,
  caller: Caller,
  id: string,
  path: string,
  user?: string,
): Promise<FileFacts> {
  return await useUnit(app, caller, id, 'no file of it can be looked at', async (unit) => {
    const facts = await app.fleet
      .engineOf(unit)
      .statFile(machineRef(unit), path, user)
      .catch(refuseFile(unit, path))
    return { ...namedPath(path), ...shownFacts(facts), target: facts.target?.toWellFormed() ?? null }
  })
}

export async function makeDirectory(
  app: App,
  caller: Caller,
  id: string,
  { path, ...owner }: { path: string } & FileOwner,
): Promise<DirectoryMade> {
  return await useUnit(app, caller, id, 'no directory can be made in it', async (unit) => {
    const made = await app.fleet
      .engineOf(unit)
      .makeDirectory(machineRef(unit), path, owner)
      .catch(refuseFile(unit, path))
    return { ...namedPath(path), made }
  })
}

/** Answers the new path. */
export async function moveFile(
  app: App,
  caller: Caller,
  id: string,
  { from, to, user }: { from: string; to: string; user?: string | undefined },
): Promise<ReturnType<typeof namedPath>> {
  return await useUnit(app, caller, id, 'no file can be moved in it', async (unit) => {
    await app.fleet
      .engineOf(unit)
      .moveFile(machineRef(unit), from, to, user)
      .catch(
        refuseFile(unit, from, {
          not_a_file: () => validation([{ path: 'to', message: `${to.toWellFormed()} is a directory` }]),
        }),
      )
    return namedPath(to)
  })
}

function shownFacts({ type, mode, bytes, modifiedAt, uid, gid, owner, group }: EntryFacts) {
  return { type, mode: octalMode(mode), bytes, modifiedAt: modifiedAt.toISOString(), uid, gid, owner, group }
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
  { path, user }: Read,
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
      .readArchive(machineRef(unit), path, forward, signal, user)
      .catch((error: unknown) => refuseStream(unit, path, { of: 'archive', begun }, error))
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
      .catch((error: unknown) => refuseStream(unit, path, { of: 'archive', begun: bytes > 0 }, error))
    return { ...namedPath(path), bytes }
  })
}
