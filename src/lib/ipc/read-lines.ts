// Reads lines from a socket between two of Berth's processes.

import type { Socket } from 'node:net'
import { createLineSplitter } from '../line-splitter.ts'

/** Calls `onLine` with each line, without its end. A line longer than `mostBytes` ends the connection. */
export function readLines(socket: Socket, mostBytes: number, onLine: (line: string) => void): void {
  const lines = createLineSplitter(mostBytes, () => {
    socket.destroy(new Error(`a line is longer than ${mostBytes} bytes`))
  })
  socket.on('data', (chunk: Buffer) => {
    for (const line of lines.add(chunk)) {
      onLine(line)
      if (socket.destroyed) return
    }
  })
}
