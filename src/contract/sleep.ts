// How long a unit may idle before it sleeps (spec 2.1).

import { z } from 'zod'
import { sleepWindowPattern } from '../lib/duration.ts'
import { strict } from './fields.ts'

const expected = '"never", or a number followed by m, h or d, such as "30m"'

/** Always a string: a number is refused with an error that says which string to send (spec 7). */
export const sleepSchema = z
  .string({
    error: ({ input }) =>
      typeof input === 'number'
        ? `must be a string such as ${windowFor(input)}, not the number ${input}`
        : `must be ${expected}`,
  })
  .regex(sleepWindowPattern, `must be ${expected}`)

const HOUR_S = 3600
/** A number up to this is read as minutes, a larger one as seconds. */
const MAX_MINUTES = 240
const MAX_SECONDS = 99_999 * 60

function windowFor(count: number): string {
  if (!Number.isInteger(count) || count < 1 || count > MAX_SECONDS) return '"30m"'
  if (count <= MAX_MINUTES) return `"${count}m"`
  if (count % (24 * HOUR_S) === 0) return `"${count / (24 * HOUR_S)}d" (${count} seconds)`
  if (count % HOUR_S === 0) return `"${count / HOUR_S}h" (${count} seconds)`
  return `"${Math.ceil(count / 60)}m" (${count} seconds)`
}

/** Body of the sleep call (spec 2.6); `now` is defined in design 4. */
export const sleepBodySchema = strict({
  sleep: sleepSchema.describe('How long the unit may idle before it sleeps; `never` keeps it running.'),
  stack: z
    .boolean()
    .default(false)
    .describe('Whether to set it for every unit of its stack, which then sleep and wake together.'),
  now: z.boolean().default(false).describe('Whether to put the unit to sleep at once.'),
}).meta({ id: 'Sleep' })
export type SleepBody = z.infer<typeof sleepBodySchema>
