// The bytes of a file on its way into a unit.

import { limits } from '../../contract/limits.ts'
import { payloadTooLarge } from '../http/errors.ts'

/** Counted as it is written, however small it came. */
export async function* bounded(pieces: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of pieces) {
    const data = Buffer.from(piece as Uint8Array)
    bytes += data.length
    if (bytes > limits.streamedFileBytes) throw payloadTooLarge(limits.streamedFileBytes)
    yield data
  }
}
