// Writes and reads files through the unit itself: the digest of what the unit reads back verifies the write (spec
// 4.2).

import type { App } from '../../app.ts'
import { type AppError, notFound, validation } from '../../contract/errors.ts'
import type { FileRead, FileWritten } from '../../contract/files.ts'
import { limits } from '../../contract/limits.ts'
import { type EngineErrorKind, isEngineError } from '../../engine/errors.ts'
import type { Caller } from '../credentials/caller.ts'
import { useUnit } from './activity/use-unit.ts'
import { notPossible } from './lifecycle/failures.ts'
import { machineRef, machineSizes } from './model/machine.ts'
import type { UnitRecord } from '../../store/unit-record.ts'

/** `path` has passed the schema of contract/files.ts. */
export async function writeFile(
  app: App,
  caller: Caller,
  id: string,
  path: string,
  content: Buffer,
): Promise<FileWritten> {
  if (content.length > limits.fileBytes) throw tooLarge('contentBase64')
  return await useUnit(app, caller, id, 'no file can be written to it', async (unit) => {
    const written = await app.engine.writeFile(machineRef(unit), path, content).catch(refuseFile(unit, path))
    const isBootFile = unit.spec.files.some((file) => file.path === path)
    return { path, ...written, ...(isBootFile ? { warning: BOOT_FILE_WARNING } : {}) }
  })
}

export async function readFile(app: App, caller: Caller, id: string, path: string): Promise<FileRead> {
  return await useUnit(app, caller, id, 'no file can be read from it', async (unit) => {
    const read = app.engine.readFile(machineRef(unit), path, limits.fileBytes)
    const content = await read.catch(refuseFile(unit, path))
    return { path, contentBase64: content.toString('base64') }
  })
}

const BOOT_FILE_WARNING = 'This is a boot file: each start overwrites it with the content in the spec.'

/** Engine errors that concern the path become errors of the caller; others are rethrown. */
const refusals: Partial<Record<EngineErrorKind, (path: string, said: string) => AppError>> = {
  file_not_found: (path) => notFound('file', path),
  not_a_file: (path) => validation([{ path: 'path', message: `${path} is not a regular file` }]),
  file_too_large: () => tooLarge('path'),
  file_refused: (_path, said) => validation([{ path: 'path', message: said }]),
  bad_path: (_path, said) => validation([{ path: 'path', message: said }]),
}

function refuseFile(unit: UnitRecord, path: string): (error: unknown) => never {
  return (error) => {
    if (isEngineError(error, 'disk_full')) throw diskFull(unit, path)
    const refusal = isEngineError(error) ? refusals[error.kind] : undefined
    throw refusal && isEngineError(error) ? refusal(path, error.publicMessage) : error
  }
}

/** The call is valid: it can be sent again once there is room. */
function diskFull(unit: UnitRecord, path: string): AppError {
  const { volume } = unit.spec
  const isOfVolume = volume !== null && (path === volume.mount || path.startsWith(`${volume.mount}/`))
  const [what, gb] = isOfVolume ? ['volume', volume.gb] : ['disk', machineSizes[unit.size].diskGb]
  const text = `${path} cannot be written: the unit's ${what} is full (${gb} GB), or its team's share of the host's is.`
  return notPossible(unit, `${text} Remove files from it, then send this again.`)
}

function tooLarge(field: string): AppError {
  return validation([{ path: field, message: `a file must be at most ${limits.fileBytes} bytes` }])
}
