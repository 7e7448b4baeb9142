// A message that asks for nothing but the protocol's own answer, or is refused before it becomes an operation, as an operation: so
// that it has its audit row and counts against the rates, as every authenticated call does (spec 2.12).

import { z } from 'zod'
import { maskText } from '../../domain/audit/mask.ts'
import { payloadTooLarge } from '../http/errors.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'
import type { MessageHead } from './messages.ts'

/** A file of 1 MB in base64 with what is around it. */
export const MESSAGE_BYTES = 2 * 1024 * 1024

/** Bytes, since they are read whole before it is known which operation they ask for. */
export const messageBody = {
  kind: 'json',
  schema: z.unknown(),
  maxBytes: MESSAGE_BYTES,
  tooLarge: () => payloadTooLarge(MESSAGE_BYTES),
} as const

const nothing = { ...messageBody, parse: () => null }
const SHOWN = 100

/** `answer` is run once the rate has been spent, and throws what the row is to say. */
export function protocolRoute(head: MessageHead | null, answer: () => Promise<void>): Route {
  const shown = (text: string | null | undefined) =>
    text === null || text === undefined ? undefined : maskText(text.slice(0, SHOWN))
  const [method, tool] = [shown(head?.method), shown(head?.name)]
  return defineRoute({
    method: 'POST',
    path: '/mcp',
    noun: 'message',
    summary: 'A message of the Model Context Protocol',
    action: 'mcp.protocol',
    kind: 'read',
    rate: 'requests',
    params: noParams,
    query: noQuery,
    body: nothing,
    status: 200,
    response: z.null(),
    events: {},
    errors: [],
    target: () => null,
    record: () => ({
      ...(method === undefined ? {} : { method }),
      ...(tool === undefined ? {} : { tool }),
    }),
    handle: async () => {
      await answer()
      return null
    },
  })
}
