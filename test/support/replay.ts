// What tests of repeated calls compare.

import type { Answer } from './service.ts'

/** All that must be the same each time: everything of an answer but the id of its request. */
export function told({ status, body }: Answer): string {
  const text = JSON.stringify(body, (name, value: unknown) => (name === 'requestId' ? undefined : value))
  return `${status} ${text}`
}

export function isReplay({ headers }: Answer): boolean {
  return headers.get('idempotent-replayed') === 'true'
}
