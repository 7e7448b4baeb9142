// The header that makes a call safe to repeat: sent again with the same key, the call returns its first answer and
// makes nothing new.

import { z } from 'zod'

const pattern = /^[\x20-\x7e]{1,255}$/

export const idempotencyKeySchema = z.string('must be sent once').regex(pattern, {
  error: 'must be 1 to 255 printable ASCII characters',
})
