// Pictures that a model looks at.

import { SandboxRuntimeError } from '@openai/agents/sandbox'

export type ImageOutput = { type: 'image'; image: { data: Uint8Array<ArrayBuffer>; mediaType: string } }

const MAX_BYTES = 10 * 1024 * 1024

/** What a file of each kind begins with. */
const beginnings: [mediaType: string, bytes: RegExp][] = [
  ['image/png', /^\u0089PNG\r\n/],
  ['image/jpeg', /^\u00ff\u00d8\u00ff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
]

/** @throws SandboxRuntimeError for what is no such picture, and above 10 MB. */
export function imageOf(path: string, bytes: Uint8Array): ImageOutput {
  if (bytes.length > MAX_BYTES) throw new SandboxRuntimeError(`${path} has more than 10 MB.`)
  const head = String.fromCharCode(...bytes.subarray(0, 16))
  const mediaType = beginnings.find(([, beginning]) => beginning.test(head))?.[0]
  if (mediaType === undefined)
    throw new SandboxRuntimeError(`${path} is no picture of the types PNG, JPEG, GIF and WebP.`)
  return { type: 'image', image: { data: Uint8Array.from(bytes), mediaType } }
}
