// The header that makes a call repeatable: sent again with the same key, it answers what it answered first
// and makes nothing.

import { z } from 'zod'

const pattern = /^[\x20-\x7e]{1,255}$/

export const idempotencyKeySchema = z.string('must be sent once').regex(pattern, {
  error: 'must be 1 to 255 printable ASCII characters',
})
