// What can go wrong with an image, as the caller is told: it names the image and what to do, never an
// address, a host path or a tool's words. Those go to the operator, as the cause.

import type { RunResult } from '../../../lib/process.ts'
import { EngineError, type EngineErrorKind } from '../../errors.ts'
import type { ProxyVerdict } from './proxy.ts'

type ImageErrorKind = Extract<EngineErrorKind, `image_${string}` | 'host_full'>

const sentences = {
  image_not_found: 'was not found in its registry',
  image_denied: 'does not exist, or its registry wants credentials that this service does not have',
  image_unavailable: 'could not be fetched: its registry does not answer as it should',
  image_invalid: 'cannot be used',
  host_full: 'does not fit: this host is nearly full',
} satisfies Record<ImageErrorKind, string>

export function imageError(
  kind: ImageErrorKind,
  reference: string,
  reason?: string,
  cause?: unknown,
): EngineError {
  const message = `The image ${reference} ${sentences[kind]}${reason === undefined ? '' : `: ${reason}`}.`
  return new EngineError(kind, message, { cause })
}

/** skopeo tells what happened in words only. The order matters: it repeats itself along the way. */
const patterns: [RegExp, ImageErrorKind][] = [
  [
    /manifest unknown|name unknown|repository name not known|NOT_FOUND|status code 404|404 \(Not Found\)/i,
    'image_not_found',
  ],
  [
    /unauthorized|authentication required|denied|invalid username\/password|401|403 \(Forbidden\)/i,
    'image_denied',
  ],
  [
    /digest did not match|does not match|digests? mismatch|unsupported manifest|invalid character/i,
    'image_invalid',
  ],
]

export function fetchFailed(reference: string, result: RunResult, verdict: ProxyVerdict | null): EngineError {
  const cause = new Error(
    `skopeo ended with ${result.exitCode} (${verdict ?? 'no verdict'}): ${result.stderr.slice(-2000)}`,
  )
  if (verdict === 'too-large')
    return imageError('image_invalid', reference, 'it is larger than it says', cause)
  if (verdict === 'refused')
    return imageError('image_denied', reference, 'its registry is not a public one', cause)
  const found = patterns.find(([pattern]) => pattern.test(result.stderr))
  if (found && verdict === null) return imageError(found[1], reference, undefined, cause)
  return imageError('image_unavailable', reference, undefined, cause)
}
