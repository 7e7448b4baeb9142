// What a visit hears of its unit before it is passed on. The server says it, the gateway goes by it.

import { z } from 'zod'
import { strict } from './fields.ts'

/** Why a unit does not wake by a visit: as its `stoppedReason` says, or it is gone, or its wake came to nothing. */
export const visitRefusals = ['stopped', 'exited', 'cap', 'credits', 'gone', 'no-room', 'failed'] as const
export type VisitRefusal = (typeof visitRefusals)[number]

export const visitedSchema = z.discriminatedUnion('kind', [
  /** This run of it, from now on for a minute at least: the shortest window there is. */
  strict({ kind: z.literal('running'), generation: z.int(), address: z.ipv4() }),
  /** A visit does not change that. */
  strict({ kind: z.literal('refused'), reason: z.enum(visitRefusals) }),
  /** On its way; the next visit may find it awake. */
  strict({ kind: z.literal('waiting'), retryAfterS: z.number() }),
])
export type Visited = z.infer<typeof visitedSchema>

/** How long a visit waits: as long as a start may wait for its turn, and then some. */
export const VISIT_WAIT_MS = 45_000
