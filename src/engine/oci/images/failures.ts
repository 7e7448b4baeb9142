// The errors of images, as a caller gets them: they name the image and what to do, never an address, a host path or a
// tool's output. Those are in the cause, for the operator.

import type { ImageReference } from '../../../contract/image-reference.ts'
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

/** skopeo reports errors only in words. The order matters, because it repeats itself. */
const patterns: [RegExp, ImageErrorKind][] = [
  [/manifest unknown|name unknown|repository name not known|\b404\b/i, 'image_not_found'],
  [/unauthorized|authentication required|denied|invalid username\/password|\b401\b|\b403\b/i, 'image_denied'],
  [
    /digest did not match|does not match|mismatch|file too large|unsupported (?:manifest|schema|mime)/i,
    'image_invalid',
  ],
]

/** Translates a failed run of skopeo. `verdict` is the proxy's. */
export function fetchFailed(
  { canonical, repository }: ImageReference,
  { exitCode, stderr }: RunResult,
  verdict: ProxyVerdict | null,
): EngineError {
  const cause = new Error(
    `skopeo ended with ${exitCode} (${verdict ?? 'no verdict'}): ${stderr.slice(-2000)}`,
  )
  if (verdict === 'too-large') {
    return imageError('image_invalid', canonical, 'it is larger than it says', cause)
  }
  if (verdict === 'refused') {
    return imageError('image_denied', canonical, 'its registry is not a public one', cause)
  }
  // Names and digests are the caller's words, not skopeo's.
  const said = stderr.replaceAll(repository, '').replaceAll(/[0-9a-f]{64}/g, '')
  const found = patterns.find(([pattern]) => pattern.test(said))
  const kind = found && verdict === null ? found[1] : 'image_unavailable'
  return imageError(kind, canonical, undefined, cause)
}
