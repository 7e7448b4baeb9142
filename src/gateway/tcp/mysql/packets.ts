// MySQL's packets: three bytes of length, a sequence number within an exchange, and the payload. Packets are read one
// at a time and never beyond, so that the next reader finds what follows.

import type { Socket } from 'node:net'

export type Packet = { number: number; payload: Buffer }

export const HEADER_BYTES = 4
/** After this number the sequence continues with 0. */
const MAX_NUMBER = 0xff

export function writePacket({ number, payload }: Packet): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUIntLE(payload.length, 0, 3)
  // After 255 comes 0.
  header.writeUInt8(number & 0xff, 3)
  return Buffer.concat([header, payload])
}

/**
 * Passes complete packets on until there are enough, then null if the connection has ended or a packet is longer than
 * allowed. After an abort nothing more is passed on.
 */
export function readPackets(
  socket: Socket,
  { mostBytes, signal }: { mostBytes: number; signal?: AbortSignal },
  take: (packet: Packet | null) => 'more' | 'enough',
): void {
  let header: Buffer | null = null
  const stop = () => {
    for (const event of ['readable', 'end', 'close']) socket.off(event, look)
    signal?.removeEventListener('abort', stop)
  }
  const look = () => {
    while (signal?.aborted !== true) {
      header ??= read(socket, HEADER_BYTES)
      const isTooLong = header !== null && lengthIn(header) > mostBytes
      const payload = header === null || isTooLong ? null : read(socket, lengthIn(header))
      if (header === null || payload === null) {
        if (!isTooLong && !socket.readableEnded && !socket.destroyed) return
        stop()
        take(null)
        return
      }
      const packet = { number: header.readUInt8(3), payload }
      header = null
      if (take(packet) === 'enough') {
        stop()
        return
      }
    }
  }
  for (const event of ['readable', 'end', 'close']) socket.on(event, look)
  signal?.addEventListener('abort', stop)
  look()
}

/** Returns the next packet; null as above. */
export function readPacket(socket: Socket, mostBytes: number): Promise<Packet | null> {
  return new Promise((resolve) => {
    readPackets(socket, { mostBytes }, (packet) => {
      resolve(packet)
      return 'enough'
    })
  })
}

function lengthIn(header: Buffer): number {
  return header.readUIntLE(0, 3)
}

/** Returns this many bytes, once they have arrived. */
function read(socket: Socket, length: number): Buffer | null {
  if (length === 0) return Buffer.alloc(0)
  const bytes = socket.read(length) as Buffer | null
  // At its end a stream returns what is left.
  return bytes?.length === length ? bytes : null
}

/** Follows a stream of packets, to know whether one is incomplete. */
export function followPackets(): { take(chunk: Buffer): void; isBetween(): boolean } {
  const header = Buffer.alloc(HEADER_BYTES)
  let headerBytes = 0
  let left = 0
  return {
    take(chunk) {
      for (let at = 0; at < chunk.length; ) {
        if (left > 0) {
          const step = Math.min(left, chunk.length - at)
          left -= step
          at += step
          continue
        }
        header[headerBytes] = chunk[at] ?? 0
        headerBytes += 1
        at += 1
        if (headerBytes < HEADER_BYTES) continue
        headerBytes = 0
        left = lengthIn(header)
      }
    },
    isBetween: () => headerBytes === 0 && left === 0,
  }
}

/**
 * Follows a client's stream of packets, in which a command may be replaced. Returns what to pass on of each piece; a
 * short command waits until it is complete. Call `answered` when the server has sent something.
 */
export function followCommands(
  { mostBytes }: { mostBytes: number },
  replace: (command: Buffer) => Buffer | null,
): { take: (piece: Buffer) => Buffer; answered: () => void } {
  let held: Buffer = Buffer.alloc(0)
  let left = 0
  let lastNumber = 0
  return {
    take(piece) {
      const bytes = held.length > 0 ? Buffer.concat([held, piece]) : piece
      const passed: Buffer[] = []
      let from = 0
      let at = 0
      while (at < bytes.length) {
        if (left > 0) {
          const step = Math.min(left, bytes.length - at)
          left -= step
          at += step
          continue
        }
        if (bytes.length - at < HEADER_BYTES) break
        const end = at + HEADER_BYTES + bytes.readUIntLE(at, 3)
        const number = bytes.readUInt8(at + 3)
        // After number 255 the same transfer continues: a file, or a very long command.
        const isCommand = number === 0 && lastNumber !== MAX_NUMBER
        if (isCommand && end - at <= HEADER_BYTES + mostBytes) {
          if (end > bytes.length) break
          const replaced = replace(bytes.subarray(at + HEADER_BYTES, end))
          if (replaced !== null) {
            passed.push(bytes.subarray(from, at), writePacket({ number, payload: replaced }))
            from = end
          }
          at = end
        } else {
          left = end - at - HEADER_BYTES
          at += HEADER_BYTES
        }
        lastNumber = number
      }
      // Copied, because it may be the end of a much larger piece.
      held = Buffer.from(bytes.subarray(at))
      if (from === 0 && at === piece.length && bytes === piece) return piece
      passed.push(bytes.subarray(from, at))
      return passed.length === 1 ? bytes.subarray(from, at) : Buffer.concat(passed)
    },
    answered() {
      lastNumber = 0
    },
  }
}
