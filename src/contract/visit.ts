// The server's answer to the gateway's question whether a visit may be passed to its unit.

import { z } from 'zod'
import { strict } from './fields.ts'

/** Why a visit does not wake a unit: its `stoppedReason`, or it is gone, or its wake failed. */
export const visitRefusals = ['stopped', 'exited', 'cap', 'credits', 'gone', 'no-room', 'failed'] as const
export type VisitRefusal = (typeof visitRefusals)[number]

export const visitedSchema = z.discriminatedUnion('kind', [
  /** The unit runs, with this generation, for at least another minute: the shortest idle window. */
  strict({ kind: z.literal('running'), generation: z.int(), address: z.ipv4() }),
  /** Another visit will get the same answer until the unit's state changes. */
  strict({ kind: z.literal('refused'), reason: z.enum(visitRefusals) }),
  /** The unit is starting; a later visit may find it awake. */
  strict({ kind: z.literal('waiting'), retryAfterS: z.number() }),
])
export type Visited = z.infer<typeof visitedSchema>

/** How long a visit waits: a little longer than a start may wait in the admission queue. */
export const VISIT_WAIT_MS = 45_000
