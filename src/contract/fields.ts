// The field types that the schemas of this folder share.

import { z } from 'zod'
import { limits } from './limits.ts'

/**
 * Returns a schema for an object that refuses unknown fields and lists the known ones in its error, because the
 * caller is often an agent that guessed a name.
 */
export function strict<T extends z.ZodRawShape>(shape: T) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `unknown field; the fields here are ${Object.keys(shape).join(', ')}`
        : undefined,
  })
}

/** Text that Postgres and a process can hold: without NUL and lone surrogates. */
export function text(maxLength: number) {
  return z
    .string()
    .max(maxLength, `must be at most ${maxLength} characters`)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), {
      error: 'must be text without NUL characters and lone surrogates',
    })
}

/** An argument of a command: as many bytes as the kernel takes. */
export const argument = text(limits.execArgvItemBytes).refine(
  (value) => new TextEncoder().encode(value).length <= limits.execArgvItemBytes,
  { error: `must be at most ${limits.execArgvItemBytes} bytes` },
)

/**
 * Characters that are blank or invisible, break a line or change the direction of text: in mails and lists a name
 * with them could pass for another.
 */
export const invisible = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

/** A name that people read, of a person or an object. */
export function nameLine(minLength: number, maxLength: number) {
  return text(maxLength)
    .min(minLength, minLength === 1 ? 'must not be empty' : `must be at least ${minLength} characters`)
    .refine((name) => name === name.trim() && !invisible.test(name), {
      error: 'must be one line of visible characters, without a space at its beginning or end',
    })
}

/** Returns a stranger's name made safe to show: one line of visible characters, possibly empty. */
export function cleanLine(name: string, maxLength: number): string {
  const visible = name.replace(new RegExp(invisible, 'gu'), ' ')
  const cut = visible.replace(/\s+/g, ' ').trim().slice(0, maxLength)
  // The cut may have split a surrogate pair.
  return cut.replace(/[\ud800-\udbff]$/, '').trim()
}

/** Allowed names of environment variables and secrets. */
export const variablePattern = /^[A-Za-z_][A-Za-z0-9_.-]*$/

export const timestamp = z.iso.datetime()

/** Euro cents, fractions included. */
export const cents = z.number()

/** A whole number in a query string. */
export function queryInteger(minimum: number, maximum: number, fallback: number) {
  return queryNumber(minimum, maximum)
    .prefault(String(fallback))
    .meta({ type: 'integer', minimum, maximum, default: fallback })
}

/** The same for one that has no default. */
export function optionalQueryInteger(minimum: number, maximum: number) {
  return queryNumber(minimum, maximum).optional().meta({ type: 'integer', minimum, maximum })
}

function queryNumber(minimum: number, maximum: number) {
  return z
    .string()
    .regex(/^[0-9]{1,9}$/, `must be a whole number from ${minimum} to ${maximum}`)
    .transform(Number)
    .pipe(z.int().min(minimum).max(maximum))
}

/** `true` or `false` in a query string. */
export const queryFlag = z
  .enum(['true', 'false'])
  .transform((value) => value === 'true')
  .prefault('false')
  .meta({ type: 'boolean', default: false })

/** Some of these words in a query string, separated by commas. */
export function queryList<const Words extends readonly string[]>(words: Words) {
  const word = `(?:${words.join('|')})`
  return z
    .string()
    .regex(new RegExp(`^${word}(?:,${word})*$`), `must be some of ${words.join(', ')}, separated by commas`)
    .transform((list) => list.split(',') as Words[number][])
    .meta({ type: 'string' })
}

/** The opaque value of an earlier answer's `next`. */
export const queryCursor = text(200).optional()
