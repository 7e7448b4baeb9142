// Reads lines from a socket between two of Berth's processes.

import type { Socket } from 'node:net'

const LINE_END = 0x0a

/** Calls `onLine` with each line, without its end. A line longer than `mostBytes` ends the connection. */
export function readLines(socket: Socket, mostBytes: number, onLine: (line: string) => void): void {
  let parts: Buffer[] = []
  let length = 0
  const take = (part: Buffer): boolean => {
    parts.push(part)
    length += part.length
    if (length > mostBytes) socket.destroy(new Error(`a line is longer than ${mostBytes} bytes`))
    return length <= mostBytes
  }
  socket.on('data', (chunk: Buffer) => {
    let from = 0
    for (let end = chunk.indexOf(LINE_END); end >= 0; end = chunk.indexOf(LINE_END, from)) {
      if (!take(chunk.subarray(from, end))) return
      const line = Buffer.concat(parts).toString('utf8')
      parts = []
      length = 0
      from = end + 1
      onLine(line)
      if (socket.destroyed) return
    }
    if (from < chunk.length) take(chunk.subarray(from))
  })
}
