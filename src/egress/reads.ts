// Reads a connection into buffers that are used again. Node allocates 64 kB for each read of a stream and frees them
// afterwards, which took half of the processor time of a download (docs/performance.md, decisions/egress.md).
//
// A connection has a small buffer of its own, and a large one only while its reads fill what they are given: what an idle
// connection has read last was less than that, so it holds a small one alone. A buffer is not read into again before what is
// in it was sent, and nothing is read meanwhile; a client that takes nothing costs one large buffer.

import type { OnReadOpts, Socket } from 'node:net'
import type { Turn } from './shares.ts'

const SMALL_BYTES = 8 * 1024
const LARGE_BYTES = 64 * 1024
/** For all connections: what is beyond is freed. */
const MAX_SPARE = 32

const spare: Buffer[] = []

export type Reads = {
  /** For `connect`, which must pause the connection before anything is read. */
  onread: OnReadOpts
  /** From now on `from` is read, with backpressure. The end of either side is the caller's. */
  begin(from: Socket): void
}

/** `to`: where everything is sent. `turn`: when the next bytes are read after some. */
export function createReads(to: Socket, turn: Turn): Reads {
  const small = Buffer.allocUnsafeSlow(SMALL_BYTES)
  let large: Buffer | null = null
  let next: Buffer = small
  let reading: Socket | null = null
  let isWaiting = false
  let hasTurn = true

  const giveBack = () => {
    if (large !== null && spare.length < MAX_SPARE) spare.push(large)
    large = null
  }
  const onSent = () => {
    if (!isWaiting || !hasTurn || to.writableLength > 0 || to.destroyed) return
    isWaiting = false
    if (next === small) giveBack()
    reading?.resume()
  }
  return {
    onread: {
      buffer: () => next,
      callback(length, buffer) {
        if (length < buffer.length) next = small
        else next = large ??= spare.pop() ?? Buffer.allocUnsafeSlow(LARGE_BYTES)
        to.write(buffer.subarray(0, length), onSent)
        const wait = turn(length)
        hasTurn = wait === null
        void wait?.then(() => {
          hasTurn = true
          onSent()
        })
        isWaiting = to.writableLength > 0 || !hasTurn
        if (!isWaiting && next === small) giveBack()
        return !isWaiting
      },
    },
    begin(from) {
      reading = from
      // A buffer that is still being sent is left to the collector.
      from.once('close', () => {
        if (!isWaiting) giveBack()
      })
      from.resume()
    },
  }
}
