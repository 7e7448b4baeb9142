// How many statements are sent to Postgres, begins and commits included: what a herd must not multiply.

import pg from 'pg'
import { onTestFinished, vi } from 'vitest'

/** Answers the count from here on, of whatever this file's tests do. */
export function countStatements(): () => number {
  const spied = vi.spyOn(pg.Client.prototype, 'query')
  onTestFinished(() => spied.mockRestore())
  return () => spied.mock.calls.length
}
