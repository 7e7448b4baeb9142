// The one way from what a caller sent to a typed value: a schema, and a `validation` error that names
// every refused field by its path (design 5).

import type { z } from 'zod'
import { type Issue, validation } from './errors.ts'

/** Throws `validation`. `at` is put before every path, for a value that is part of something larger. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, at = ''): z.output<S> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw validation(result.error.issues.flatMap((issue) => toIssues(issue, at)))
}

function toIssues(issue: z.core.$ZodIssue, at: string): Issue[] {
  const path = [at, ...issue.path.map(String)].filter((part) => part !== '').join('.')
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: path === '' ? key : `${path}.${key}`, message: issue.message }))
    case 'invalid_key':
      return [{ path, message: issue.issues[0]?.message ?? issue.message }]
    default:
      return [{ path, message: issue.message }]
  }
}
