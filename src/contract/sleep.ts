// How long a unit may idle before it sleeps (spec 2.1).

import { z } from 'zod'
import { sleepWindowPattern } from '../lib/duration.ts'
import { strict } from './fields.ts'

const expected = '"never", or a number followed by m, h or d, such as "30m"'

/** Always a string: a number is refused with the string to send instead (spec 7). */
export const sleepSchema = z
  .string({
    error: ({ input }) =>
      typeof input === 'number'
        ? `sleep must be a string such as "${asMinutes(input)}", not the number ${input}`
        : `sleep must be ${expected}`,
  })
  .regex(sleepWindowPattern, `sleep must be ${expected}`)

function asMinutes(count: number): string {
  return Number.isInteger(count) && count >= 1 && count <= 99999 ? `${count}m` : '30m'
}

/** Body of the sleep call (spec 2.6); `now` is design 4's. */
export const sleepBodySchema = strict({
  sleep: sleepSchema.describe('How long it may idle before it sleeps; `never` keeps it always on.'),
  stack: z
    .boolean()
    .default(false)
    .describe('The same for every unit of its stack, which then sleeps and wakes together.'),
  now: z.boolean().default(false).describe('Also put to sleep at once, whatever the window says.'),
}).meta({ id: 'Sleep' })
export type SleepBody = z.infer<typeof sleepBodySchema>
