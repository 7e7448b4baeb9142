// Reads the parts of a JSON-RPC message that the endpoint needs before the protocol library reads it.

import { z } from 'zod'
import { AppError, type ErrorCode } from '../../contract/errors.ts'
import { readText, type WebAnswer } from './bridge.ts'

const messageSchema = z.object({
  method: z.string().optional().catch(undefined),
  id: z
    .union([z.string().max(200), z.number()])
    .nullable()
    .optional()
    .catch(undefined),
  params: z
    .object({ name: z.string().optional().catch(undefined), requestId: z.unknown(), _meta: z.unknown() })
    .partial()
    .optional()
    .catch(undefined),
})

export type MessageHead = {
  method: string | null
  id: string | number | null
  name: string | null
  requestId: unknown
}

/** Accepts any value; what is not a message has none of these fields. */
export function headOf(message: unknown): MessageHead {
  const read = messageSchema.safeParse(message)
  const { method, id, params } = read.success ? read.data : {}
  return { method: method ?? null, id: id ?? null, name: params?.name ?? null, requestId: params?.requestId }
}

export function isToolCall({ method, id }: MessageHead): boolean {
  return method === 'tools/call' && id !== null
}

/** Fields of the protocol revision that sends everything with each request. */
export function hasEnvelope(message: unknown): boolean {
  const read = z.object({ params: z.object({ _meta: z.record(z.string(), z.unknown()) }) }).safeParse(message)
  if (!read.success) return false
  return Object.keys(read.data.params._meta).some((key) => key.startsWith('io.modelcontextprotocol/'))
}

const codeOfStatus: Record<number, ErrorCode> = {
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  500: 'internal',
}

/** Returns the error that the audit log records for a message the protocol library refused. */
export function refusedBy(status: number, message: string): AppError {
  const known = status >= 400 ? status : 400
  return new AppError(codeOfStatus[known] ?? 'validation', known, message)
}

/** A JSON-RPC error, with the HTTP status that the API would answer. */
export function errorAnswer(error: AppError, code: number, id: string | number | null): WebAnswer {
  const { status, message, retryAfterS } = error
  const data = { code: error.code, ...(retryAfterS === null ? {} : { retryAfterS }) }
  return {
    status,
    headers: {
      'content-type': 'application/json',
      ...(retryAfterS === null ? {} : { 'retry-after': String(retryAfterS) }),
      ...(status === 405 ? { allow: 'POST' } : {}),
    },
    body: [Buffer.from(JSON.stringify({ jsonrpc: '2.0', error: { code, message, data }, id }))],
  }
}

/** Returns the error that an answer reports, for its audit row; null if it reports none. */
export async function faultIn(answer: WebAnswer): Promise<AppError | null> {
  if (answer.status >= 400) return refusedBy(answer.status, 'The message was refused.')
  const { text } = await readText(answer)
  return /"error":\{"code":-?\d+/.test(text.slice(0, 1000))
    ? refusedBy(400, 'The message was refused.')
    : null
}
