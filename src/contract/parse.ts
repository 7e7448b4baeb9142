// Turns what a caller sent into a typed value: a schema, and a `validation` error that names every refused field by
// its path (design 5).

import type { z } from 'zod'
import { type Issue, validation } from './errors.ts'
import { sentenceOf } from './sentences.ts'

/** Limits the refused fields and the path lengths in an answer, because the caller chooses both. */
const ISSUES = 50
const PATH_LENGTH = 200

/** Throws `validation`. `at` is prefixed to every path, for a value that is part of a larger one. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, at = ''): z.output<S> {
  const result = schema.safeParse(value, { error: sentenceOf })
  if (result.success) return result.data
  const { issues } = result.error
  throw validation(
    issues
      .slice(0, ISSUES)
      .flatMap((issue) => toIssues(issue, at))
      .slice(0, ISSUES),
  )
}

function toIssues(issue: z.core.$ZodIssue, at: string): Issue[] {
  const path = [at, ...issue.path.map(String)]
    .filter((part) => part !== '')
    .join('.')
    .slice(0, PATH_LENGTH)
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.slice(0, ISSUES).map((key) => {
        const ofKey = (path === '' ? key : `${path}.${key}`).slice(0, PATH_LENGTH)
        return { path: ofKey, message: issue.message }
      })
    case 'invalid_key':
      return [{ path, message: issue.issues[0]?.message ?? issue.message }]
    default:
      return [{ path, message: issue.message }]
  }
}
