// Turns the bytes of a command's output into JSON events without losing any: UTF-8 as text, everything else as base64
// (design 5). A character cut by a chunk waits for its remaining bytes.

import type { ExecOutputEvent } from '../../contract/exec.ts'

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
      const whole = bytes.length - unfinishedLength(bytes)
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

/** Returns how many bytes at the end belong to an incomplete character: 0 to 3. */
function unfinishedLength(bytes: Buffer): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const byte = bytes[bytes.length - length] ?? 0
    if ((byte & 0b1100_0000) === 0b1000_0000) continue
    return length < characterLength(byte) ? length : 0
  }
  return 0
}

function characterLength(first: number): number {
  if (first >= 0b1111_0000 && first <= 0b1111_0100) return 4
  if (first >= 0b1110_0000 && first < 0b1111_0000) return 3
  if (first >= 0b1100_0010 && first < 0b1110_0000) return 2
  return 1
}
