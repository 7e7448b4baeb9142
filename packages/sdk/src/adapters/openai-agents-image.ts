// Pictures that a model looks at.

import { SandboxRuntimeError } from '@openai/agents/sandbox'
import { pictureTypeOf } from '../picture-type.ts'

export type ImageOutput = { type: 'image'; image: { data: Uint8Array<ArrayBuffer>; mediaType: string } }

const MAX_BYTES = 10 * 1024 * 1024

/** @throws SandboxRuntimeError for what is no such picture, and above 10 MB. */
export function imageOf(path: string, bytes: Uint8Array): ImageOutput {
  if (bytes.length > MAX_BYTES) throw new SandboxRuntimeError(`${path} has more than 10 MB.`)
  const mediaType = pictureTypeOf(bytes)
  if (mediaType === null)
    throw new SandboxRuntimeError(`${path} is no picture of the types PNG, JPEG, GIF and WebP.`)
  return { type: 'image', image: { data: Uint8Array.from(bytes), mediaType } }
}
