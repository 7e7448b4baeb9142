// Addresses of people. Two are the same when they differ in the case of ASCII letters alone: what else looks alike, a
// Kelvin sign for a K or another tag behind a plus, is somebody else's.

import { z } from 'zod'
import { limits } from './limits.ts'

export const emailSchema = z
  .email('must be an email address')
  .max(limits.inviteEmailLength, `must be at most ${limits.inviteEmailLength} characters`)

/** Not `toLowerCase()`, which makes a k of a Kelvin sign. */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
