// How many statements are sent to Postgres, begins and commits included: what a herd must not multiply.

import pg from 'pg'
import { onTestFinished, vi } from 'vitest'

/** Answers the count from here on, of all statements of this file's tests or of those that match. */
export function countStatements(matching = /(?:)/): () => number {
  const spied = vi.spyOn(pg.Client.prototype, 'query')
  onTestFinished(() => spied.mockRestore())
  return () => spied.mock.calls.filter(([sent]) => matching.test(textOf(sent))).length
}

function textOf(sent: unknown): string {
  if (typeof sent === 'string') return sent
  return sent !== null && typeof sent === 'object' && 'text' in sent ? String(sent.text) : ''
}
