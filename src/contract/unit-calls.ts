// POST /v1/units/{id}/calls: what reached a unit through a port of its own, told by the program that passed it on.

import { z } from 'zod'
import { strict, text } from './fields.ts'
import { limits } from './limits.ts'

export const unitCallsSchema = strict({
  calls: z
    .array(
      strict({
        method: text(64)
          .regex(/^[A-Za-z][A-Za-z0-9_./-]*$/, 'must be the name of a method, such as process/start')
          .describe('As the protocol names it.'),
        count: z.int().min(1).max(1_000_000).default(1).describe('How often it was called like this.'),
        cmd: z
          .array(text(limits.argvItemLength))
          .min(1)
          .max(limits.argvItems)
          .optional()
          .describe('What it started. Kept as that of exec is: cut, without passwords.'),
        path: text(1024).optional().describe('The file that it was about.'),
        session: text(128).optional().describe("The session's id at its vendor."),
      }),
    )
    .min(1)
    .max(limits.toldCalls)
    .describe('In the order of their first call.'),
}).meta({ id: 'UnitCalls' })
export type UnitCalls = z.infer<typeof unitCallsSchema>
