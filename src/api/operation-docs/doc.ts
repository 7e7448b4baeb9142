// The texts and examples of an operation in the OpenAPI document: for an agent that reads nothing else.

import type { ErrorStatus } from '../http/errors.ts'

export type OperationDoc = {
  /** What the success response contains. */
  answer: string
  /** What the call costs. Default: nothing. */
  cost?: string
  /** What an error means here and what to do then, if the shared text of its status does not say it. */
  errors?: Partial<Record<ErrorStatus, string>>
  /** An example of a valid body. */
  request?: unknown
  /** Examples of parameters in the query, for an operation without a body in either direction. */
  query?: Record<string, unknown>
  /** An example of the success response. */
  response: unknown
  /** An example of the response as a stream of events. */
  events?: string
}

type SseEvent = { event: string; id?: string; data: unknown }

/** Writes events in the format of Server-Sent Events. */
export function sseExample(events: SseEvent[]): string {
  return events
    .map(({ event, id, data }) => [
      ...(id === undefined ? [] : [`id: ${id}`]),
      `event: ${event}`,
      `data: ${JSON.stringify(data)}`,
      '',
      '',
    ])
    .map((lines) => lines.join('\n'))
    .join('')
}
