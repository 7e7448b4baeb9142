// Decides whether two calls are the same: their parsed input is equal, so the order of fields and explicit defaults
// do not matter, or their bytes are equal. The latter matters when a call is retried after an upgrade of this
// service, whose new version may add a default to the parsed body.

import { createHash } from 'node:crypto'
import { canonicalJson } from '../../lib/canonical-json.ts'

export type Fingerprint = { meant: string; sent: string }

/** Of the input after validation, and as it was sent. */
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
