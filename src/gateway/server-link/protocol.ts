// What the gateway may ask of the server, and nothing else: to wake units, and to record that they are used. The
// gateway parses strangers' bytes, so it has neither the engine's socket nor a right to change anything in the
// database; whoever takes it over can keep units awake, and no more.
//
// In lines of JSON (json-lines-rpc.ts), over a unix socket: a visit that wakes its unit waits for the way there and back.

import { z } from 'zod'
import { VISIT_WAIT_MS, visitedSchema } from '../../contract/visit.ts'
import { SECOND } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'

const unitId = z.string().refine((text) => isId('unit', text), 'is no id of a unit')
/** As many as there can be visits (session-limits.ts). */
export const MAX_IDS = 16_384
const endpointId = z.string().refine((text) => isId('endpoint', text), 'is no id of an endpoint')
/** As many as a unit can have, and then some. */
const MAX_ENDPOINTS = 8
const unitIds = z.array(unitId).max(MAX_IDS)

export const wakeOperations = {
  /** The unit is awake, and stays so for a minute at least; or why not. */
  use: {
    request: z.strictObject({ unitId }),
    answer: visitedSchema,
    deadlineMs: VISIT_WAIT_MS + 5 * SECOND,
  },
  /** These are in use, which is recorded. Answers which of them run. */
  used: {
    request: z.strictObject({ unitIds }),
    answer: z.strictObject({ awake: unitIds }),
    deadlineMs: 10 * SECOND,
  },
  /** All units with visits under way that last, in place of those told before, and at which endpoints, if known. */
  visits: {
    request: z.strictObject({
      unitIds,
      endpoints: z.record(unitId, z.array(endpointId).max(MAX_ENDPOINTS)).optional(),
    }),
    answer: z.strictObject({}),
    deadlineMs: 10 * SECOND,
  },
} as const

export type WakeOperation = keyof typeof wakeOperations
export type WakeRequest = { [K in WakeOperation]: z.infer<(typeof wakeOperations)[K]['request']> }
export type WakeAnswer = { [K in WakeOperation]: z.infer<(typeof wakeOperations)[K]['answer']> }

/** Of any line: as many ids as there may be, and then some. */
export const MAX_BYTES = 1024 * 1024

/** What the gateway says: one question a line. */
export const requestSchema = z.strictObject({
  id: z.int().min(0),
  operation: z.string(),
  request: z.unknown(),
})

const answer = z.strictObject({ id: z.int().min(0), answer: z.unknown() })
const runEnded = z.strictObject({ departed: z.string() })
export type Answer = z.infer<typeof answer>
export type RunEnded = z.infer<typeof runEnded>

/**
 * What the server says: an answer, null where it has none just now, or, unasked, the id of a unit that stops running.
 * It begins with an empty line, from which on no departure is missed, and says another now and then, which tells a
 * quiet server from one that is gone.
 */
export const messageSchema = z.union([answer, runEnded])
export const KEEP_ALIVE_MS = 3 * SECOND
export const SILENT_FOR_MS = 3 * KEEP_ALIVE_MS
