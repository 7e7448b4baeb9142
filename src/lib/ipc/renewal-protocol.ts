// How the server, which has no authority's key, has a host's certificates signed by the supervisor, which has
// (decisions/joining.md): JSON lines over a socket that only the server's group can open.

import { z } from 'zod'
import { MINUTE } from '../clock.ts'

/** More than a request, and than two certificates. */
export const RENEWAL_MAX_BYTES = 32 * 1024
export const RENEWAL_DEADLINE_MS = MINUTE

/** `host`: the name of the host whose engine was asked, as the server knows it. */
export const renewalCall = z.strictObject({
  id: z.int().min(0),
  host: z.string().max(64),
  request: z.string(),
})
export const renewalReply = z.strictObject({
  id: z.int().min(0),
  outcome: z.union([
    z.strictObject({ engine: z.string(), gateway: z.string() }),
    z.strictObject({ refused: z.string() }),
  ]),
})
export type RenewalReply = z.infer<typeof renewalReply>
