// The field types of messages on the engine's socket (protocol.ts).

import { z } from 'zod'

const KB = 1024

export const date = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (value) => value.toISOString(),
})

export const bytes = (max: number) =>
  z.codec(z.string().max(base64Length(max)), z.instanceof(Buffer), {
    decode: (text, context) => {
      const content = Buffer.from(text, 'base64')
      if (base64Length(content.length) === text.length) return content
      context.issues.push({ code: 'custom', input: '', message: 'must be whole base64' })
      return z.NEVER
    },
    encode: (content) => content.toString('base64'),
  })

export const id = z.string().regex(/^[a-z0-9_]{1,64}$/)

/** A string for execve: without NUL. */
export const noNul = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[^\0]*$/)

/** Each string is limited as by the kernel; the body's size limits their number. */
export const env = z.record(z.string().regex(/^[^=\0]{1,1024}$/), noNul(128 * KB))

function base64Length(byteCount: number): number {
  return Math.ceil(byteCount / 3) * 4
}

export const generation = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)
export const ref = z.strictObject({ id, generation })

/** machinePath validates it, so that the caller gets `bad_path`. */
export const path = z.string().max(64 * KB)

export const tcpPort = z.int().min(1).max(65_535)

export const nothing = z.null()

/** Of a body without content. */
export const SMALL = 64 * KB
