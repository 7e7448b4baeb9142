// The files of a form, one after the other: the next one is read once the one before was taken.

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import { validation } from '../../../contract/errors.ts'
import { callerGone } from '../../http/errors.ts'

export type Part = { filename: string; pieces: Readable }

const MAX_FILES = 1000
/** Beside the files a form says nothing. */
const FIELD_BYTES = 1024

/** Resolves once `take` has taken every file. Throws what it throws, or what is wrong with the form. */
export async function partsOf(request: IncomingMessage, take: (part: Part) => Promise<void>): Promise<void> {
  const form = openForm(request)
  const done = Promise.withResolvers<void>()
  let taking = Promise.resolve()
  const fail = (error: unknown) => {
    request.unpipe(form)
    done.reject(error)
  }
  form.on('file', (_field, pieces, filename: string | undefined) => {
    // Its error is that of the form.
    pieces.on('error', () => {})
    taking = taking.then(async () => await take({ filename: filename ?? '', pieces }))
    taking.catch((error: unknown) => {
      pieces.resume()
      fail(error)
    })
  })
  form.on('filesLimit', () => fail(malformed(`at most ${MAX_FILES} files`)))
  form.on('error', () => fail(malformed('a complete form')))
  form.on('finish', () => void taking.then(done.resolve, done.reject))
  request.once('close', () => {
    if (!request.complete) fail(callerGone())
  })
  request.pipe(form)
  await done.promise
}

function openForm({ headers }: IncomingMessage): BusboyInstance {
  const limits = { files: MAX_FILES, fields: 16, fieldSize: FIELD_BYTES, parts: MAX_FILES + 16 }
  try {
    return new Busboy({ headers: headers as never, preservePath: true, limits, isPartAFile })
  } catch {
    throw malformed('a boundary in its content-type')
  }
}

/** Clients send a file also as a plain field of this name, where the query says its path. */
const isPartAFile = (field: string | undefined, type: string | undefined, filename: string | undefined) =>
  field === 'file' || filename !== undefined || type === 'application/octet-stream'

function malformed(what: string) {
  return validation([{ path: '', message: `the body must be a form with ${what}` }])
}
