// The protocol between gateway and server: the gateway may only ask to wake units, and record that they are used. The
// gateway parses untrusted bytes, so it has no access to the engine's socket and no right to change the database; an
// attacker who takes it over can only keep units awake.
//
// It is JSON lines (json-lines-rpc.ts) over a unix socket, because a visit that wakes its unit waits for the round
// trip.

import { z } from 'zod'
import { VISIT_WAIT_MS, visitedSchema } from '../../contract/visit.ts'
import { SECOND } from '../../lib/clock.ts'
import { answerLine, eventLine, failureLine } from '../../lib/ipc/call-lines.ts'
import { isId } from '../../lib/ids.ts'

const unitId = z.string().refine((text) => isId('unit', text), 'is not the id of a unit')
/** As many as there can be visits (session-limits.ts). */
export const MAX_IDS = 16_384
const endpointId = z.string().refine((text) => isId('endpoint', text), 'is not the id of an endpoint')
/** More than a unit can have. */
const MAX_ENDPOINTS = 8
const unitIds = z.array(unitId).max(MAX_IDS)

export const wakeOperations = {
  /** Records a use and wakes the unit. Answers that it stays awake for at least a minute, or why not. */
  use: {
    request: z.strictObject({ unitId }),
    answer: visitedSchema,
    deadlineMs: VISIT_WAIT_MS + 5 * SECOND,
  },
  /** Records that these units are in use. Answers which of them run. */
  used: {
    request: z.strictObject({ unitIds }),
    answer: z.strictObject({ awake: unitIds }),
    deadlineMs: 10 * SECOND,
  },
  /** All units with long visits in progress, replacing the previous list, and their endpoints if known. */
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

/** The longest line: somewhat more than the largest number of ids. */
export const MAX_BYTES = 1024 * 1024

/** What the server cannot answer now, as while the database is away. */
const failure = failureLine.extend({
  error: failureLine.shape.error.extend({ kind: z.literal('unavailable') }),
})
const runEnded = eventLine.extend({ event: z.literal('runEnded') })
export type Failure = z.infer<typeof failure>
export type RunEnded = z.infer<typeof runEnded>

/**
 * A line of the server: the answer or failure of a call, or the event that a unit has stopped running. The first line is
 * empty: after it no event is missed. Later empty lines show that the server is alive.
 */
export const messageSchema = z.union([answerLine, failure, runEnded])
export const KEEP_ALIVE_MS = 3 * SECOND
export const SILENT_FOR_MS = 3 * KEEP_ALIVE_MS
