// Reads a request's body, after the caller is authenticated. The size is limited, and a body whose headers already
// show that it cannot be read is refused before reading.

import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { type AppError, validation } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { parse } from '../../contract/parse.ts'
import { callerGone, payloadTooLarge, unsupportedMediaType } from './errors.ts'
import { parseJson } from './json.ts'

export type Body<B> = {
  /** `stream`: read by its operation, piece by piece. */
  kind: 'none' | 'json' | 'bytes' | 'stream'
  /** An absent body is read as `{}`. */
  isOptional?: boolean
  /** Of a stream. */
  media?: string
  /** The schema in the OpenAPI document. */
  schema: z.ZodType
  maxBytes: number
  tooLarge: () => AppError
  parse: (bytes: Buffer) => B
}

/** The largest file in base64, with line breaks and the JSON around it. */
const JSON_BYTES = 2 * limits.fileBytes

export function jsonBody<S extends z.ZodType>(
  schema: S,
  {
    tooLarge = () => payloadTooLarge(JSON_BYTES),
    formOf,
    isOptional = false,
  }: {
    tooLarge?: () => AppError
    /** For a schema with several forms: selects the form to validate a body with. */
    formOf?: (body: unknown) => z.ZodType
    isOptional?: boolean
  } = {},
): Body<z.output<S>> {
  return {
    kind: 'json',
    isOptional,
    schema,
    maxBytes: JSON_BYTES,
    tooLarge,
    parse: (bytes) => {
      const nothing = isOptional ? {} : undefined
      const body = bytes.length === 0 ? nothing : parseJson(bytes)
      return parse(formOf?.(body) ?? schema, body) as z.output<S>
    },
  }
}

/** A file as raw bytes. */
export const fileBody: Body<Buffer> = {
  kind: 'bytes',
  schema: z.string().meta({ format: 'binary' }),
  maxBytes: limits.fileBytes,
  tooLarge: () =>
    validation([
      { path: '', message: `The body is the file, and must be at most ${limits.fileBytes} bytes.` },
    ]),
  parse: (bytes) => bytes,
}

/** A file of any size. */
export const streamedFileBody: Body<null> = {
  kind: 'stream',
  media: 'application/octet-stream',
  schema: z.string().meta({ format: 'binary' }),
  maxBytes: limits.streamedFileBytes,
  tooLarge: () => payloadTooLarge(limits.streamedFileBytes),
  parse: () => null,
}

/** A directory in the format of tar. */
export const archiveBody: Body<null> = {
  kind: 'stream',
  media: 'application/x-tar',
  schema: z.string().meta({ format: 'binary' }),
  maxBytes: limits.archiveBytes,
  tooLarge: () => payloadTooLarge(limits.archiveBytes),
  parse: () => null,
}

/** An event of the payment provider, as raw bytes, because its signature covers them. */
export const eventBody: Body<Buffer> = {
  kind: 'bytes',
  schema: z.string().meta({ format: 'binary' }),
  maxBytes: limits.paymentEventBytes,
  tooLarge: () => payloadTooLarge(limits.paymentEventBytes),
  parse: (bytes) => bytes,
}

const nothing = z.union([z.undefined(), z.strictObject({})])

/** No body. Clients that always send one may send an empty object. */
export const noBody: Body<null> = {
  kind: 'none',
  schema: nothing,
  maxBytes: 1024,
  tooLarge: () => payloadTooLarge(1024),
  parse: (bytes) => {
    parse(nothing, bytes.length === 0 ? undefined : parseJson(bytes))
    return null
  },
}

/** Spec 4.2: a file over 1 MB is refused with 400; other bodies that are too large get 413. */
export function fileTooLarge(): AppError {
  return validation([{ path: 'contentBase64', message: `a file must be at most ${limits.fileBytes} bytes` }])
}

/** Whether the request's headers announce a body, which most calls do not have. */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined
}

/** Returns how many bytes `readBody` may read. */
export function bodyBytesOf(
  request: Pick<IncomingMessage, 'headers'>,
  { kind, maxBytes }: Pick<Body<unknown>, 'kind' | 'maxBytes'>,
): number {
  if (kind === 'stream' || !hasBody(request)) return 0
  const declared = request.headers['content-length']
  return declared === undefined ? maxBytes : Math.min(Number(declared), maxBytes)
}

/** Returns the bytes of a body. The rest of a refused body is read and dropped when the answer is sent. */
export async function readBody(
  request: IncomingMessage,
  body: Omit<Body<unknown>, 'parse'>,
): Promise<Buffer> {
  const { headers } = request
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
    throw unsupportedMediaType('Send the body without a content-encoding.')
  }
  const declared = Number(headers['content-length'] ?? 0)
  if (declared > body.maxBytes) throw body.tooLarge()
  // Reading one that is not there takes a stream's listeners and a turn of the event loop.
  if (body.kind === 'stream' || !hasBody(request)) return Buffer.alloc(0)
  const chunks: Buffer[] = []
  for await (const chunk of bodyPieces(request, body)) chunks.push(chunk)
  if (body.kind !== 'bytes' && chunks.length > 0) refuseOtherThanJson(headers['content-type'])
  return Buffer.concat(chunks)
}

/** Returns the body piece by piece. Throws if it is too long, or if its sender disconnects. */
export async function* bodyPieces(
  request: IncomingMessage,
  body: Pick<Body<unknown>, 'maxBytes' | 'tooLarge'>,
): AsyncGenerator<Buffer> {
  let bytes = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) throw new TypeError('the stream of a request holds bytes')
      bytes += chunk.length
      if (bytes > body.maxBytes) throw body.tooLarge()
      yield chunk
    }
  } catch (error) {
    throw request.destroyed && !request.complete ? callerGone() : error
  }
}

function refuseOtherThanJson(contentType: string | undefined): void {
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  const charset = parameters.map((parameter) => parameter.trim()).find((p) => p.startsWith('charset='))
  const isUtf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset)
  if (type.trim() !== 'application/json' || !isUtf8) {
    throw unsupportedMediaType('Send the body as "content-type: application/json", in UTF-8.')
  }
}
