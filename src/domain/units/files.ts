// Writes and reads files through the unit itself: the digest of what the unit reads back verifies the write (spec
// 4.2).

import type { App } from '../../app.ts'
import { type FileRead, type FileWritten, namedPath, octalMode } from '../../contract/files.ts'
import { limits } from '../../contract/limits.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { fileTooLarge, refuseFile } from './file-refusals.ts'
import { machineRef } from './model/machine.ts'

/** `path` has passed the schema of contract/files.ts. */
export async function writeFile(
  app: App,
  caller: Caller,
  id: string,
  path: string,
  content: Buffer,
  mode?: number,
): Promise<FileWritten> {
  if (content.length > limits.fileBytes) throw fileTooLarge('contentBase64')
  return await useUnit(app, caller, id, 'no file can be written to it', async (unit) => {
    const written = await app.fleet
      .engineOf(unit)
      .writeFile(machineRef(unit), path, content, mode)
      .catch(refuseFile(unit, path))
    const isBootFile = unit.spec.files.some((file) => file.path === path)
    return { ...namedPath(path), ...written, ...(isBootFile ? { warning: BOOT_FILE_WARNING } : {}) }
  })
}

/** `mode`: in octal digits. */
export async function readFile(
  app: App,
  caller: Caller,
  id: string,
  path: string,
): Promise<FileRead & { mode: string }> {
  return await useUnit(app, caller, id, 'no file can be read from it', async (unit) => {
    const read = app.fleet.engineOf(unit).readFile(machineRef(unit), path, limits.fileBytes)
    const { content, mode } = await read.catch(refuseFile(unit, path))
    return { ...namedPath(path), contentBase64: content.toString('base64'), mode: octalMode(mode) }
  })
}

const BOOT_FILE_WARNING = 'This is a boot file: each start overwrites it with the content in the spec.'
