// When a unit ends however much it is used, and how. Not in the spec (9.2).

import { z } from 'zod'
import { timeToLivePattern } from '../lib/duration.ts'

export const unitEnds = ['destroy', 'sleep', 'stop'] as const
export type UnitEnd = (typeof unitEnds)[number]

const expected = '"never", or a number followed by s, m, h or d, such as "300s" or "2h"'

const timeToLiveSchema = z
  .string({ error: `must be a string: ${expected}` })
  .regex(timeToLivePattern, `must be ${expected}`)

const atEndSchema = z.enum(unitEnds)

const whatHappens =
  '`destroy` destroys the unit. `sleep` puts it to sleep, also in the middle of a command, and takes the time to live away: the unit wakes as any other, and then has no end until it is given one. `stop` stops it in the same way: it keeps its disk, and starts when it is told to.'

/** Of a create; the time begins when the unit is ready. */
export const timeToLiveFields = {
  timeToLive: timeToLiveSchema
    .optional()
    .describe(
      'How long the unit lives once it is ready, however much it is used. A number with `s`, `m`, `h` or `d`. Default: `never`, without an end.',
    ),
  atEnd: atEndSchema
    .optional()
    .describe(`What happens when that time has passed. ${whatHappens} Default: \`destroy\`.`),
}

/** Of a fork: the copies. */
export const timeToLiveOfCopyFields = {
  timeToLive: timeToLiveSchema
    .optional()
    .describe("How long a copy lives, from when it is there. Default: the source's, from its beginning."),
  atEnd: atEndSchema.optional().describe("What happens then. Default: the source's."),
}

/** Of a change. */
export const timeToLiveChangeFields = {
  timeToLive: timeToLiveSchema
    .optional()
    .describe('How long the unit lives from now on, or from when it is ready; `never` takes its end away.'),
  atEnd: atEndSchema.optional().describe(`What happens then. ${whatHappens}`),
}
