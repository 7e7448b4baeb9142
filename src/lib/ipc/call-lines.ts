// The lines that all JSON-lines protocols have in common (json-lines-rpc.ts): a call, its answer or its failure, an event. A
// protocol narrows what is in them.

import { z } from 'zod'

const id = z.int().min(0)

export const callLine = z.strictObject({ id, operation: z.string(), request: z.unknown() })

export const answerLine = z.strictObject({ id, answer: z.unknown() })
/** `kind` is one of the protocol's, `publicMessage` a sentence for the caller. */
export const failureLine = z.strictObject({
  id,
  error: z.strictObject({ kind: z.string(), publicMessage: z.string() }),
})
export type ReplyLine = z.infer<typeof answerLine> | z.infer<typeof failureLine>

/** Something that no call asked for. `of`: the id of what it happened to. */
export const eventLine = z.strictObject({ event: z.string(), of: z.string() })

/** Returns null if the line is not JSON or does not match the schema. */
export function parseLine<T>(schema: z.ZodType<T>, line: string): T | null {
  try {
    return schema.safeParse(JSON.parse(line)).data ?? null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
