// How long a sandbox lives, in the seconds of this interface and in the words of the API.

import { z } from 'zod'

/** What the API counts in one unit of time. */
const MAX_COUNT = 99_999

export const secondsSchema = z
  .int('must be a whole number of seconds')
  .min(0, 'must not be negative')
  .max(60 * MAX_COUNT, 'must be at most 69 days')

/** The default of this interface's clients. */
export const DEFAULT_TIMEOUT_S = 300

/** Zero ends it at once. */
export function timeToLiveOf(seconds: number): string {
  if (seconds <= MAX_COUNT) return `${Math.max(1, seconds)}s`
  return `${Math.ceil(seconds / 60)}m`
}

/** Whether a time from now is later than an end. */
export function isLater(seconds: number, endsAt: string | null, now: Date): boolean {
  return endsAt !== null && now.getTime() + seconds * 1000 > new Date(endsAt).getTime()
}
