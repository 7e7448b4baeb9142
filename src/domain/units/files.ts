// Writes and reads files through the unit itself: the digest of what the unit reads back verifies the write (spec
// 4.2).

import type { App } from '../../app.ts'
import { type FileRead, type FileWritten, octalMode } from '../../contract/files.ts'
import { namedPath } from '../../contract/file-paths.ts'
import { limits } from '../../contract/limits.ts'
import type { FileOwner, WrittenFile } from '../../engine/engine.ts'
import type { UnitRecord } from '../../store/unit-record.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { fileTooLarge, refuseFile, refuseStream } from './file-refusals.ts'
import { machineRef } from './model/machine.ts'

/** `path` has passed the schema of contract/files.ts. */
export async function writeFile(
  app: App,
  caller: Caller,
  id: string,
  path: string,
  content: Buffer,
  owner: FileOwner = {},
): Promise<FileWritten> {
  if (content.length > limits.fileBytes) throw fileTooLarge('contentBase64')
  return await useUnit(app, caller, id, 'no file can be written to it', async (unit) => {
    const written = await app.fleet
      .engineOf(unit)
      .writeFile(machineRef(unit), path, content, owner)
      .catch(refuseFile(unit, path))
    return toWritten(unit, path, written)
  })
}

/** The same of content of any size, as it comes. */
export async function receiveFile(
  app: App,
  caller: Caller,
  id: string,
  { path, ...owner }: { path: string } & FileOwner,
  pieces: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<FileWritten> {
  let begun = false
  const noticed = async function* () {
    for await (const piece of pieces) {
      begun = true
      yield piece
    }
  }
  return await useUnit(app, caller, id, 'no file can be written to it', async (unit) => {
    const written = await app.fleet
      .engineOf(unit)
      .receiveFile(machineRef(unit), path, noticed(), owner, signal)
      .catch((error: unknown) => refuseStream(unit, path, { of: 'file', begun }, error))
    return toWritten(unit, path, written)
  })
}

/** What is read, and as whom: absent, as root. */
export type Read = { path: string; user?: string | undefined }

/** Sends a file of any size. `send` waits until the caller has room for more; `onMode` comes before it. */
export async function sendFile(
  app: App,
  caller: Caller,
  id: string,
  { path, user }: Read,
  { onMode, send }: { onMode: (mode: number) => void; send: (data: Buffer) => Promise<void> },
  signal: AbortSignal,
): Promise<void> {
  await useUnit(app, caller, id, 'no file can be read from it', async (unit) => {
    let begun = false
    const forward = async (data: Buffer) => {
      begun = true
      await send(data)
    }
    await app.fleet
      .engineOf(unit)
      .sendFile(machineRef(unit), path, onMode, forward, signal, user)
      .catch((error: unknown) => refuseStream(unit, path, { of: 'file', begun }, error))
  })
}

function toWritten(unit: UnitRecord, path: string, written: WrittenFile): FileWritten {
  const isBootFile = unit.spec.files.some((file) => file.path === path)
  return { ...namedPath(path), ...written, ...(isBootFile ? { warning: BOOT_FILE_WARNING } : {}) }
}

/** `mode`: in octal digits. */
export async function readFile(
  app: App,
  caller: Caller,
  id: string,
  path: string,
  user?: string,
): Promise<FileRead & { mode: string }> {
  return await useUnit(app, caller, id, 'no file can be read from it', async (unit) => {
    const read = app.fleet.engineOf(unit).readFile(machineRef(unit), path, limits.fileBytes, user)
    const { content, mode } = await read.catch(refuseFile(unit, path))
    return { ...namedPath(path), contentBase64: content.toString('base64'), mode: octalMode(mode) }
  })
}

const BOOT_FILE_WARNING = 'This is a boot file: each start overwrites it with the content in the spec.'
