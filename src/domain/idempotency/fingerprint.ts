// Whether two calls ask for the same. They do when they mean the same: the order of fields does not matter,
// nor whether a default is spelled out. They also do when the same bytes were sent: a retry is often due to
// a restart of this service, and a newer version may read a default into a body that the older did not have.

import { createHash } from 'node:crypto'
import { canonicalJson } from '../../lib/canonical-json.ts'

export type Fingerprint = { meant: string; sent: string }

/** Of a call as its schemas read it, and as it came. */
export function fingerprint(
  input: unknown,
  { params, query, body }: { params: unknown; query: unknown; body: Buffer },
): Fingerprint {
  const meant = createHash('sha256').update(canonicalJson(input))
  const sent = createHash('sha256')
    .update(`${canonicalJson([params, query])}\n`)
    .update(body)
  return { meant: meant.digest('base64'), sent: sent.digest('base64') }
}

export function asksTheSame(a: Fingerprint, b: Fingerprint): boolean {
  return a.meant === b.meant || a.sent === b.sent
}
