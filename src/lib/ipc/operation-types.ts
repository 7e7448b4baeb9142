// What the operations of a protocol are asked and answer, as types: from its table of schemas.

import type { z } from 'zod'

export type RequestsOf<T extends Record<string, { request: z.ZodType }>> = {
  [K in keyof T]: z.output<T[K]['request']>
}

export type AnswersOf<T extends Record<string, { answer: z.ZodType }>> = {
  [K in keyof T]: z.output<T[K]['answer']>
}
