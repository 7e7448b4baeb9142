// The two ends of a streamed call: the frames that go out, and the last message that comes back (client.ts).

import type { TerminalInput } from '../terminal.ts'
import { encodeFrame, type Frame } from './frames.ts'

/**
 * Passes the bytes of a stream on and returns the message that comes after them, or null without one. Reads the stream to its
 * end, so that its connection serves the next call.
 */
export async function lastMessage(
  frames: AsyncIterable<Frame>,
  onBytes: (type: 'stdout' | 'stderr', data: Buffer) => void | Promise<void>,
): Promise<{ said: unknown } | null> {
  let last: Buffer | null = null
  try {
    for await (const { type, data } of frames) {
      if (type === 'stdout' || type === 'stderr') await onBytes(type, data)
      else last = data
    }
  } catch (error) {
    if (last === null) throw error
  }
  return last && { said: JSON.parse(last.toString('utf8')) as unknown }
}

export async function* inputFrames(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of pieces) yield encodeFrame('input', piece)
}

export async function* terminalFrames(input: AsyncIterable<TerminalInput>): AsyncGenerator<Buffer> {
  for await (const each of input)
    yield each.kind === 'bytes'
      ? encodeFrame('input', each.data)
      : encodeFrame('message', JSON.stringify(each))
}
