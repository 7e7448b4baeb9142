// A user of a unit, for whom a command runs or to whom a file belongs.

import { z } from 'zod'

export const unitUserSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/,
    'must be a name or a number of a user, such as "app" or "1000"',
  )

/** Of a command. */
export const commandUserSchema = unitUserSchema
  .optional()
  .describe(
    "Who runs it: a name or a number of the unit's `/etc/passwd`, whose home is then `HOME`. Default: the user of the unit's own process.",
  )
