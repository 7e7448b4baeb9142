// What the gateway may ask of the server, and nothing else: to wake units, and to record that they are used. The
// gateway parses strangers' bytes, so it has neither the engine's socket nor a right to change anything in the
// database; whoever takes it over can keep units awake, and no more. HTTP on a unix socket.

import { z } from 'zod'
import { VISIT_WAIT_MS, visitedSchema } from '../contract/visit.ts'
import { SECOND } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'

const KB = 1024

const unitId = z.string().refine((text) => isId('unit', text), 'is no id of a unit')
/** As many as there can be visits (visit-limits.ts). */
export const MOST_IDS = 16_384
const unitIds = z.array(unitId).max(MOST_IDS)

export const wakeOperations = {
  /** The unit is awake, and stays so for a minute at least; or why not. */
  use: {
    request: z.strictObject({ unitId }),
    answer: visitedSchema,
    maxBodyBytes: KB,
    deadlineMs: VISIT_WAIT_MS + 5 * SECOND,
  },
  /** These are in use, which is recorded. Answers which of them run. */
  used: {
    request: z.strictObject({ unitIds }),
    answer: z.strictObject({ awake: unitIds }),
    maxBodyBytes: 1024 * KB,
    deadlineMs: 10 * SECOND,
  },
  /** All units with visits under way that last, in place of those told before. */
  visits: {
    request: z.strictObject({ unitIds }),
    answer: z.strictObject({}),
    maxBodyBytes: 1024 * KB,
    deadlineMs: 10 * SECOND,
  },
} as const

export type WakeOperation = keyof typeof wakeOperations
export type WakeRequest = { [K in WakeOperation]: z.infer<(typeof wakeOperations)[K]['request']> }
export type WakeAnswer = { [K in WakeOperation]: z.infer<(typeof wakeOperations)[K]['answer']> }

/**
 * The fourth operation is a stream: the id of each unit that stops running, a line each, from the first on. An
 * empty line now and then tells a quiet server from one that is gone.
 */
export const DEPARTURES = 'departures'
export const KEEP_ALIVE_MS = 3 * SECOND
export const SILENT_FOR_MS = 3 * KEEP_ALIVE_MS
