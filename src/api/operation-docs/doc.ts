// What the OpenAPI document tells of an operation beside its schemas: for an agent that reads it and nothing else.

import type { ErrorStatus } from '../http/errors.ts'

export type OperationDoc = {
  /** What the answer of a success holds. */
  answer: string
  /** What the call costs. Left out where it costs nothing but its share of the rate. */
  cost?: string
  /** What an error means here and what to do then, where that is more than the shared text of its status says. */
  errors?: Partial<Record<ErrorStatus, string>>
  /** A body that is accepted. */
  request?: unknown
  /** The body of a success. */
  response: unknown
}
