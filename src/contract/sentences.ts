// What a schema refuses, as a sentence after the name of its field: what is allowed, and in short what was sent. Texts
// that were sent are counted, not repeated: one may be a secret, also in a field that takes one of few words. Schemas with a message of their own keep it.

import type { z } from 'zod'

type Refused = z.core.$ZodRawIssue

/** Undefined leaves the schema's own words. */
export function sentenceOf(issue: Refused): string | undefined {
  const sentence = allowedBy(issue)
  return issue.input === undefined && sentence !== undefined ? `is missing: it ${sentence}` : sentence
}

function allowedBy(issue: Refused): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${kinds[issue.expected] ?? issue.expected}${notSent(issue.input)}`
    case 'invalid_value':
      // A text that is none of these texts is not wrong by being one.
      return `must be ${oneOf(issue.values)}${typeof issue.input === 'string' ? '' : notSent(issue.input)}`
    case 'too_small':
      return bound('at least', issue, issue.minimum)
    case 'too_big':
      return bound('at most', issue, issue.maximum)
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}${notSent(issue.input)}`
    case 'invalid_union':
      return unionSentence(issue)
    default:
      return undefined
  }
}

const kinds: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

function notSent(input: unknown): string {
  if (input === undefined) return ''
  if (typeof input === 'number' || typeof input === 'boolean' || input === null)
    return `, not ${String(input)}`
  return `, not ${Array.isArray(input) ? 'a list' : (kinds[typeof input] ?? typeof input)}`
}

function oneOf(values: readonly unknown[]): string {
  const spelled = values.map((value) => (typeof value === 'bigint' ? String(value) : JSON.stringify(value)))
  return spelled.length === 1 ? (spelled[0] ?? '') : `one of ${spelled.join(', ')}`
}

function bound(
  word: 'at least' | 'at most',
  { origin, exact, input }: { origin: string; exact?: boolean; input?: unknown },
  limit: number | bigint,
): string {
  const much = exact === true ? 'exactly' : word
  const of = (count: unknown, noun: string) => `must have ${much} ${limit} ${noun}, not ${String(count)}`
  if (typeof input === 'string') return of(input.length, 'characters')
  if (Array.isArray(input)) return of(input.length, 'entries')
  if (typeof input === 'object' && input !== null) return of(Object.keys(input).length, 'entries')
  return `must be ${much} ${limit}${origin === 'date' ? '' : notSent(input)}`
}

/** The kinds of value that a field of several takes; the words of the first form if the kind is right. */
function unionSentence({
  errors,
  input,
}: {
  errors: z.core.$ZodIssue[][]
  input?: unknown
}): string | undefined {
  const firsts = errors.map(([first]) => first)
  const fitting = firsts.find((first) => first && !(first.code === 'invalid_type' && first.path.length === 0))
  if (fitting) return fitting.message
  const expected = firsts.map((first) =>
    first?.code === 'invalid_type' ? (kinds[first.expected] ?? first.expected) : null,
  )
  const names = [...new Set(expected.filter((name) => name !== null))]
  return names.length === 0 ? undefined : `must be ${names.join(' or ')}${notSent(input)}`
}
