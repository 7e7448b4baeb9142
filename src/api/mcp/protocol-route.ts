// Runs a message that only the protocol answers, or that is refused before it becomes an operation, as an operation:
// it then has an audit row and counts against the rates, like every authenticated call (spec 2.12).

import { z } from 'zod'
import { maskText } from '../../domain/audit/mask.ts'
import { payloadTooLarge } from '../http/errors.ts'
import { defineRoute, noParams, noQuery, type Route } from '../route.ts'
import type { MessageHead } from './messages.ts'

/** A file of 1 MB in base64, with the JSON around it. */
export const MESSAGE_BYTES = 2 * 1024 * 1024

/** Raw bytes, because the body is read before the operation is known. */
export const messageBody = {
  kind: 'json',
  schema: z.unknown(),
  maxBytes: MESSAGE_BYTES,
  tooLarge: () => payloadTooLarge(MESSAGE_BYTES),
} as const

const nothing = { ...messageBody, parse: () => null }
const SHOWN = 100

/** `answer` runs after the rate was counted, and throws the error for the audit row. */
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
