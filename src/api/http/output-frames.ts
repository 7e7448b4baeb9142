// Turns the bytes of a command's output into JSON events without losing any: UTF-8 as text, everything else as base64
// (design 5). A character cut by a chunk waits for its remaining bytes.

import type { ExecOutputEvent } from '../../contract/exec.ts'
import { wholeLength } from '../../lib/utf8.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export type OutputFrames = {
  /** Returns the events of the bytes so far, or none if all of them are part of an incomplete character. */
  push(chunk: Buffer): ExecOutputEvent[]
  /** Returns the bytes still waiting, once no more will come. */
  end(): ExecOutputEvent[]
  /** The number of bytes that wait. */
  held(): number
}

export function outputFrames(): OutputFrames {
  let held: Buffer = Buffer.alloc(0)
  return {
    push: (chunk) => {
      const bytes = Buffer.concat([held, chunk])
      const whole = wholeLength(bytes)
      held = bytes.subarray(whole)
      return toEvents(bytes.subarray(0, whole))
    },
    end: () => {
      const rest = held
      held = Buffer.alloc(0)
      return toEvents(rest)
    },
    held: () => held.length,
  }
}

function toEvents(bytes: Buffer): ExecOutputEvent[] {
  if (bytes.length === 0) return []
  try {
    return [{ data: utf8.decode(bytes) }]
  } catch {
    return [{ data: bytes.toString('base64'), encoding: 'base64' }]
  }
}
